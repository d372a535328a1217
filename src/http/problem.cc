#include "http/problem.h"

#include <boost/json/serialize.hpp>

namespace pawl::http {

Response to_response(const Problem& problem) {
  boost::json::object body{{"type", "urn:pawl:problem:" + problem.code},
                           {"title", problem.title},
                           {"status", problem.status},
                           {"detail", problem.detail},
                           {"code", problem.code},
                           {"retryable", problem.retry == Retry::kLater}};
  for (const auto& member : problem.more) body.insert(member);
  return {problem.status, "application/problem+json", boost::json::serialize(body) + "\n",
          problem.headers};
}

}  // namespace pawl::http

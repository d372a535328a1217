// HTTP requests to a store, over libcurl: one at a time, each with a limit of time and size. No
// redirect is followed. On a connection that was kept open and turns out to be closed libcurl sends
// a request again, so that all requests must be fit for that: idempotent, or conditional.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aws/sigv4.h"
#include "pawl/result.h"

namespace pawl::aws {

struct HttpOptions {
  std::string ca_file = {};  // certificates to trust instead of the system's
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds timeout{30'000};  // of a request with its answer
};

struct Response {
  int status = 0;
  std::vector<Header> headers = {};
  std::string body = {};
  // libcurl may have sent the request twice: on a kept connection that turned out to be closed, and
  // on a new one. The answer is that to the second.
  bool perhaps_repeated = false;

  // Empty: there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

// What one connection of libcurl does; tests have their own.
class Http {
 public:
  virtual ~Http() = default;
  // To `origin` ("https://host:port") with the path and query of the request. An answer of at most
  // `body_max` bytes.
  //   kUnavailable   no connection was made: nothing happened.
  //   kUnknown       it was sent, perhaps in part, and not answered: it may have happened.
  //   kInvalid       a GET with a larger answer.
  [[nodiscard]] virtual Result<Response> send(const std::string& origin, const Request& request,
                                              std::size_t body_max) = 0;
};

// Used by one thread at a time. Keeps its connection open between requests.
[[nodiscard]] std::unique_ptr<Http> make_http(HttpOptions options);

}  // namespace pawl::aws

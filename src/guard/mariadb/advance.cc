#include "guard/mariadb/advance.h"

#include <fmt/format.h>

#include "guard/mariadb/failures.h"
#include "guard/words.h"

namespace pawl::guard {

Result<std::uint64_t> advance(MYSQL* connection, const std::string& resource, std::uint64_t token,
                              std::chrono::milliseconds wait) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  const auto done = call(connection, "advance", {resource, std::to_string(token), std::to_string(seconds)});
  if (done) return parse_token(done.at(0, "before").value_or("")).value_or(0);
  // The answer is lost, not the statement: it may be committing.
  if (done.failure->disconnected)
    return Error{Code::kUnknown, "the connection broke; the fence may have been raised"};
  return to_error(*done.failure);
}

Result<std::vector<std::string>> blockers(MYSQL* connection, const std::string& resource) {
  const auto found = call(connection, "blockers", {resource});
  if (!found) return to_error(*found.failure);
  std::vector<std::string> list;
  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    const auto text = [&](const char* column) { return found.at(i, column).value_or(""); };
    list.push_back(fmt::format("connection {} {}@{} since {} {}", text("pid"), text("login"), text("host"),
                               text("since"), text("query")));
  }
  return list;
}

}  // namespace pawl::guard

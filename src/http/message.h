// A request, its response, and a problem, as plain values.
#pragma once

#include <boost/json/object.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::http {

struct Header {
  std::string name;
  std::string value;
};

struct Request {
  // As sent; "GET" also for HEAD, whose response is sent without its body.
  std::string method;
  // Path and query, as sent.
  std::string target;
  std::vector<Header> headers;
  std::string body;
  // The address of the client, "127.0.0.1:40312".
  std::string peer;
  // The common name of the verified client certificate; empty if there is none.
  std::string user = {};
  // Whether it came by HTTPS.
  bool tls = false;

  // The value of a header; names ignore case. Nothing if it is missing, and also if it was sent
  // twice, because it is not clear what two values mean.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  // How often a header was sent.
  [[nodiscard]] std::size_t count(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json";  // Content-Type; empty: no body.
  std::string body = {};
  std::vector<Header> headers = {};
};

enum class Retry : std::uint8_t { kNever, kLater };

// What went wrong, for programs and for people: application/problem+json (RFC 9457).
//
//   return Problem{409, "held", "someone else holds it", "reports/nightly is held by …",
//                  Retry::kLater};
struct Problem {
  int status = 500;
  // Stable; programs decide by it.
  std::string code;
  // The same for every problem of this code.
  std::string title;
  // What it was this time.
  std::string detail;
  // Whether the very same request may succeed later.
  Retry retry = Retry::kNever;
  std::vector<Header> headers = {};
  // Further members of the JSON object, which depend on the code.
  boost::json::object more = {};
};
[[nodiscard]] Response to_response(const Problem& problem);

// The text of a Date header: "Tue, 17 Nov 2026 03:01:06 GMT".
[[nodiscard]] std::string date_text(std::chrono::system_clock::time_point time);

// Whether two ASCII words are equal, ignoring case.
[[nodiscard]] bool same_word(std::string_view a, std::string_view b);

}  // namespace pawl::http

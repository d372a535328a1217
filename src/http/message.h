// A request and its answer, as plain values: what handlers see of HTTP.
#pragma once

#include <chrono>
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
  std::string method;  // as sent; "GET" also for HEAD, whose answer is sent without its body
  std::string target;  // path and query, as sent
  std::vector<Header> headers;
  std::string body;
  std::string peer;  // "127.0.0.1:40312"
  std::string user =
      {};  // the common name of its client certificate, which was verified; empty without one

  // The header's value; names ignore case. Nothing when it is missing, and when it was sent twice:
  // what two values mean is anybody's guess.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json";  // Content-Type; empty: no body
  std::string body = {};
  std::vector<Header> headers = {};
};

// As the header Date has it: "Tue, 17 Nov 2026 03:01:06 GMT".
[[nodiscard]] std::string date_text(std::chrono::system_clock::time_point time);

// ASCII, ignoring case.
[[nodiscard]] bool same_word(std::string_view a, std::string_view b);

}  // namespace pawl::http

#include "gate/http1.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "gate/limits.h"

namespace pawl::gate {
namespace {

using http::Header;
using http::Problem;
using http::same_word;

constexpr std::string_view kCrLf = "\r\n";

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kOthers.find(c) != std::string_view::npos;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

// Tab, space, visible ASCII and bytes above it.
bool is_value_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Error wrong(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

Problem refused(int status, std::string code, std::string title, std::string detail) {
  return {.status = status,
          .code = std::move(code),
          .title = std::move(title),
          .detail = std::move(detail)};
}

Problem malformed(std::string detail) {
  return refused(400, "malformed_request", "the request cannot be read", std::move(detail));
}

// The lines of a head, without the empty one at its end. An error for a bare CR or LF.
Result<std::vector<std::string_view>> lines_of(std::string_view head) {
  std::vector<std::string_view> lines;
  while (!head.starts_with(kCrLf)) {
    const auto end = head.find(kCrLf);
    const std::string_view line = head.substr(0, end);
    if (line.find_first_of("\r\n") != std::string_view::npos)
      return wrong("a line of the head ends with a bare CR or LF");
    if (lines.size() > limits::kGateHeadersMax)
      return wrong(fmt::format("more than {} headers", limits::kGateHeadersMax));
    lines.push_back(line);
    head.remove_prefix(end + kCrLf.size());
  }
  if (lines.empty()) return wrong("the head is empty");
  return lines;
}

Result<Header> parse_header(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return wrong("a header has no colon");
  const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  // Also a folded line, and a space before the colon.
  if (!is_word(name)) return wrong("the name of a header has characters that are not allowed");
  if (!std::all_of(value.begin(), value.end(), is_value_char))
    return wrong(fmt::format("the value of {} has control characters", name));
  return Header{std::string(name), std::string(value)};
}

Result<Headers> parse_headers(const std::vector<std::string_view>& lines) {
  Headers headers;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto header = parse_header(lines[i]);
    if (!header) return header.error();
    headers.push_back(std::move(*header));
  }
  return headers;
}

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
  std::uint64_t number = 0;
  const bool digits = std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') ||
           (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
  });
  if (!digits || text.empty() || text.size() > 15) return std::nullopt;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

// What Content-Length and Transfer-Encoding say. `otherwise`: when there is neither.
Result<Framing> framing_of(const Headers& headers, Framing::Type otherwise) {
  const std::size_t lengths = count_of(headers, "Content-Length");
  const std::size_t codings = count_of(headers, "Transfer-Encoding");
  if (lengths > 0 && codings > 0) return wrong("it has Content-Length and Transfer-Encoding");
  if (lengths > 1) return wrong("it has more than one Content-Length");
  if (codings > 1) return wrong("it has more than one Transfer-Encoding");
  if (codings == 1) {
    if (!same_word(*only_value(headers, "Transfer-Encoding"), "chunked"))
      return wrong("its Transfer-Encoding is not chunked");
    return Framing{Framing::Type::kChunked, 0};
  }
  if (lengths == 0) return Framing{otherwise, 0};
  const auto length = parse_number(*only_value(headers, "Content-Length"), 10);
  if (!length) return wrong("its Content-Length is not a number");
  return *length == 0 ? Framing{} : Framing{Framing::Type::kLength, *length};
}

// Calls `visit` for each word of a list such as "close, upgrade".
template <class Visit>
void each_word(const Headers& headers, std::string_view name, Visit visit) {
  for (const Header& header : headers) {
    if (!same_word(header.name, name)) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const auto comma = std::min(rest.find(','), rest.size());
      if (const auto word = trimmed(rest.substr(0, comma)); !word.empty()) visit(word);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
}

bool lists(const Headers& headers, std::string_view name, std::string_view word) {
  bool found = false;
  each_word(headers, name, [&](std::string_view each) { found |= same_word(each, word); });
  return found;
}

std::optional<Problem> parse_request_line(std::string_view line, RequestHead& head) {
  const auto first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return malformed("its first line is not METHOD PATH HTTP/1.1");
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_word(method) || method.size() > 32) return malformed("its method is not a word");
  if (version != "HTTP/1.1") {
    return refused(505, "http_version", "only HTTP/1.1 is served", "send the request as HTTP/1.1");
  }
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (target.empty() || target.front() != '/' ||
      !std::all_of(target.begin(), target.end(), visible) ||
      target.find('#') != std::string_view::npos)
    return malformed("its target is not a path such as /accounts/7");
  if (method == "CONNECT" || method == "TRACE") {
    return refused(405, "method_not_allowed", "this method is not forwarded",
                   fmt::format("the gate forwards no {}", method));
  }
  head.method = method;
  head.target = target;
  return std::nullopt;
}

std::optional<Problem> check_request(RequestHead& head) {
  if (count_of(head.headers, "Host") != 1) return malformed("it has not exactly one Host");
  if (count_of(head.headers, "Upgrade") != 0 || lists(head.headers, "Connection", "upgrade")) {
    return refused(
        501, "upgrade_refused", "upgrades are not forwarded",
        "the gate cannot check tokens behind an upgrade, such as to WebSocket; leave out "
        "the header Upgrade");
  }
  auto body = framing_of(head.headers, Framing::Type::kNone);
  if (!body) return malformed(body.error().detail);
  head.body = *body;
  head.keep_alive = !lists(head.headers, "Connection", "close");
  if (count_of(head.headers, "Expect") == 0) return std::nullopt;
  const auto expects = only_value(head.headers, "Expect");
  if (!expects || !same_word(*expects, "100-continue")) {
    return refused(417, "expectation_failed", "this expectation cannot be met",
                   "only Expect: 100-continue is known");
  }
  head.expects_continue = head.body.type != Framing::Type::kNone;
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> head_end(std::string_view bytes) {
  const auto end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  return end + 4;
}

std::variant<RequestHead, Problem> parse_request(std::string_view head) {
  const auto lines = lines_of(head);
  if (!lines) return malformed(lines.error().detail);
  RequestHead request;
  if (auto problem = parse_request_line(lines->front(), request)) return *problem;
  auto headers = parse_headers(*lines);
  if (!headers) return malformed(headers.error().detail);
  request.headers = std::move(*headers);
  if (auto problem = check_request(request)) return *problem;
  return request;
}

Result<ResponseHead> parse_response(std::string_view head, bool is_head) {
  const auto lines = lines_of(head);
  if (!lines) return lines.error();
  const std::string_view line = lines->front();
  // "HTTP/1.1 200 OK"; the reason may be missing.
  if (!(line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ")) || line.size() < 12 ||
      (line.size() > 12 && line[12] != ' '))
    return wrong("its first line is not HTTP/1.1 STATUS REASON");
  const auto status = parse_number(line.substr(9, 3), 10);
  if (!status || *status < 100 || *status > 599) return wrong("its status is not 100 to 599");
  ResponseHead response;
  response.status = static_cast<int>(*status);
  response.reason = line.size() > 13 ? line.substr(13) : "";
  if (!std::all_of(response.reason.begin(), response.reason.end(), is_value_char))
    return wrong("its reason has control characters");
  auto headers = parse_headers(*lines);
  if (!headers) return headers.error();
  response.headers = std::move(*headers);
  auto body = framing_of(response.headers, Framing::Type::kUntilClose);
  if (!body) return body.error();
  const bool empty = is_head || *status < 200 || *status == 204 || *status == 304;
  response.body = empty ? Framing{} : *body;
  return response;
}

std::size_t count_of(const Headers& headers, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(),
                    [&](const Header& each) { return same_word(each.name, name); }));
}

std::optional<std::string_view> only_value(const Headers& headers, std::string_view name) {
  std::optional<std::string_view> value;
  for (const Header& header : headers) {
    if (!same_word(header.name, name)) continue;
    if (value) return std::nullopt;
    value = header.value;
  }
  return value;
}

Headers end_to_end(const Headers& headers) {
  constexpr std::array<std::string_view, 11> kHops{"Connection",
                                                   "Keep-Alive",
                                                   "Proxy-Connection",
                                                   "Proxy-Authenticate",
                                                   "Proxy-Authorization",
                                                   "TE",
                                                   "Trailer",
                                                   "Transfer-Encoding",
                                                   "Upgrade",
                                                   "Expect",
                                                   "Content-Length"};
  Headers kept;
  for (const Header& header : headers) {
    const bool hop = std::any_of(kHops.begin(), kHops.end(), [&](std::string_view name) {
      return same_word(header.name, name);
    });
    // Connection cannot remove what the meaning of the request depends on.
    const bool fixed = same_word(header.name, "Host") || same_word(header.name, "X-Fencing-Token");
    if (!hop && (fixed || !lists(headers, "Connection", header.name))) kept.push_back(header);
  }
  return kept;
}

std::string head_text(std::string_view first_line, const Headers& headers) {
  std::string text = fmt::format("{}\r\n", first_line);
  for (const Header& header : headers) text += fmt::format("{}: {}\r\n", header.name, header.value);
  return text + "\r\n";
}

std::string chunk_text(std::string_view payload) {
  return fmt::format("{:x}\r\n{}\r\n", payload.size(), payload);
}

// --- Bodies --------------------------------------------------------------------------------------

BodyReader::BodyReader(Framing framing, Reads reads)
    : framing_(framing),
      reads_(reads),
      done_(framing.type == Framing::Type::kNone),
      left_(framing.length) {}

Result<void> BodyReader::read(std::string& input, std::string& payload) {
  if (done_) return {};
  if (framing_.type == Framing::Type::kChunked) return read_chunked(input, payload);
  if (framing_.type == Framing::Type::kUntilClose) {
    payload += input;
    input.clear();
    return {};
  }
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
  payload.append(input, 0, count);
  input.erase(0, count);
  left_ -= count;
  done_ = left_ == 0;
  return {};
}

Result<void> BodyReader::read_chunked(std::string& input, std::string& payload) {
  std::size_t at = 0;
  const auto finish = [&](Result<void> result) {
    input.erase(0, at);
    return result;
  };
  while (!done_ && at < input.size()) {
    if (part_ == Part::kData) {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - at));
      payload.append(input, at, count);
      at += count;
      left_ -= count;
      if (left_ == 0) part_ = Part::kDataEnd;
      continue;
    }
    const std::size_t end = input.find('\n', at);
    const std::size_t length = (end == std::string::npos ? input.size() : end) - at;
    if (length > limits::kGateChunkLineMax)
      return finish(wrong("a line between chunks is too long"));
    if (end == std::string::npos) break;
    const auto line = std::string_view(input).substr(at, length);
    at = end + 1;
    if (line.empty() || line.back() != '\r')
      return finish(wrong("a line between chunks ends with a bare LF"));
    if (const auto taken = take_line(line.substr(0, line.size() - 1)); !taken) return finish(taken);
  }
  return finish({});
}

Result<void> BodyReader::take_line(std::string_view line) {
  if (part_ == Part::kDataEnd) {
    if (!line.empty()) return wrong("a chunk is longer than its size says");
    part_ = Part::kSize;
    return {};
  }
  if (part_ == Part::kTrailer) {
    done_ = line.empty();
    if (!line.empty() && reads_ == Reads::kRequest) return wrong("trailers are not forwarded");
    trailer_bytes_ += line.size();
    if (trailer_bytes_ > limits::kGateHeadMax) return wrong("the trailers are too long");
    return {};
  }
  if (reads_ == Reads::kResponse) line = trimmed(line.substr(0, line.find(';')));
  const auto size = parse_number(line, 16);
  if (!size) return wrong("the size of a chunk is not a plain hexadecimal number");
  left_ = *size;
  part_ = left_ == 0 ? Part::kTrailer : Part::kData;
  return {};
}

}  // namespace pawl::gate

// HTTP/1.1 as a proxy must read it: strictly. What two programs could read in two ways is refused,
// so that the gate and the upstream never disagree on where a request ends or what it is for. No
// I/O.
//
//   if (const auto end = head_end(bytes)) {
//     auto head = parse_request(std::string_view(bytes).substr(0, *end));
//     BodyReader body(head.body, BodyReader::Reads::kRequest);
//     body.read(bytes, payload);
//
// Refused are, beyond what RFC 9112 calls malformed: lines that end with a bare LF; folded lines;
// Content-Length together with Transfer-Encoding, or given twice, even if equal; transfer codings
// other than exactly `chunked`; chunk extensions and trailers in requests; HTTP/1.0; targets that
// are not a path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/message.h"
#include "pawl/result.h"

namespace pawl::gate {

// Where a body ends.
struct Framing {
  enum class Type : std::uint8_t { kNone, kLength, kChunked, kUntilClose };
  Type type = Type::kNone;
  std::uint64_t length = 0;  // with kLength
};

using Headers = std::vector<http::Header>;

struct RequestHead {
  std::string method;
  std::string target;  // path and query, as sent
  Headers headers;
  Framing body;
  bool keep_alive = true;
  bool expects_continue = false;
};

struct ResponseHead {
  int status = 0;
  std::string reason;
  Headers headers;
  Framing body;
};

// The length of the head at the front of `bytes`, with its empty line; nothing if it is not
// complete.
[[nodiscard]] std::optional<std::size_t> head_end(std::string_view bytes);

// `head` is what head_end() delimits. The problem is the answer to whoever sent it.
[[nodiscard]] std::variant<RequestHead, http::Problem> parse_request(std::string_view head);
// `is_head`: the answer to HEAD, which has no body. kInvalid says what is wrong.
[[nodiscard]] Result<ResponseHead> parse_response(std::string_view head, bool is_head);

// The value of a header that was sent once; nothing if it is missing or was sent more than once.
[[nodiscard]] std::optional<std::string_view> only_value(const Headers& headers,
                                                         std::string_view name);
[[nodiscard]] std::size_t count_of(const Headers& headers, std::string_view name);

// Without those that are for one connection only (Connection and what it names, Keep-Alive,
// Transfer-Encoding, Upgrade, …) and without Content-Length and Expect: the sender of a message
// writes these anew.
[[nodiscard]] Headers end_to_end(const Headers& headers);

// A head as bytes: the first line, the headers, the empty line.
[[nodiscard]] std::string head_text(std::string_view first_line, const Headers& headers);
// One chunk of a chunked body. `payload` is not empty: an empty chunk is the end.
[[nodiscard]] std::string chunk_text(std::string_view payload);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Finds the payload of a body, and its end.
class BodyReader {
 public:
  enum class Reads : std::uint8_t {
    kRequest,   // extensions of chunks and trailers are refused
    kResponse,  // they are dropped
  };
  BodyReader() = default;
  BodyReader(Framing framing, Reads reads);

  // Takes bytes from the front of `input` until the body ends, and appends its payload. kInvalid:
  // what is wrong with it.
  Result<void> read(std::string& input, std::string& payload);
  [[nodiscard]] bool done() const { return done_; }
  // The connection has ended. Whether the body is complete with that.
  [[nodiscard]] bool ends_with_connection() const {
    return done_ || framing_.type == Framing::Type::kUntilClose;
  }

 private:
  Result<void> read_chunked(std::string& input, std::string& payload);
  // One line of the chunked coding, without its CRLF.
  Result<void> take_line(std::string_view line);

  enum class Part : std::uint8_t { kSize, kData, kDataEnd, kTrailer };
  Framing framing_{};
  Reads reads_ = Reads::kRequest;
  bool done_ = true;
  std::uint64_t left_ = 0;  // of the body, or of the chunk
  Part part_ = Part::kSize;
  std::size_t trailer_bytes_ = 0;
};

}  // namespace pawl::gate

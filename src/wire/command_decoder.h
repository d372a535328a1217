// Decodes bytes from a client into commands: RESP arrays of bulk strings, and inline lines as
// telnet sends them.
//
//   wire::CommandDecoder decoder;                       // one per connection
//   for (;;) {
//     const auto command = decoder.decode(unread);      // begins after the last complete command
//     if (command.status != DecodeStatus::kComplete) break;
//     if (!command.args.empty()) serve(command.args);   // empty: a blank line or *0
//     unread.remove_prefix(command.consumed);
//   }
//
// A valid frame is one of:
//
//   *N CRLF, then N times: $L CRLF, L bytes, CRLF
//     N <= limits::kFrameArgsMax; N and L decimal, without sign or leading zero
//   a line that ends in LF or CRLF
//     words separated by spaces, "…" with \n \r \t \b \a \\ \" \xHH, or '…' with \'
//
// and has at most limits::kFrameMax bytes, or fewer if the caller says so. Sizes are checked when they are announced, before
// anything is allocated or waited for. A line that begins with POST or Host: is an HTTP request
// that a web page was tricked into sending; it ends the connection, and so does the beginning of a
// TLS handshake.
//
// No I/O, no clock. The work per call is bounded even if bytes arrive one by one: finished
// arguments are remembered by offset, so the buffer may move between calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/error_code.h"

namespace pawl::wire {

enum class DecodeStatus : std::uint8_t { kComplete, kNeedMore, kProtocolError };

struct DecodedCommand {
  DecodeStatus status = DecodeStatus::kNeedMore;
  // The bytes of this command; 0 unless complete.
  std::size_t consumed = 0;
  // Point into the buffer (quoted inline words: into the decoder). Valid until the next decode().
  std::span<const std::string_view> args;
  // Set on a protocol error: send it, then close the connection. Nothing more can be decoded.
  ErrorCode error = ErrorCode::kErr;
  std::string_view message;  // A constant.
};

// The first word of the command at the front of `buffer`, without decoding the rest; empty when it is
// not whole yet, or malformed. Points into the buffer. A quoted inline word keeps its quotes.
[[nodiscard]] std::string_view peek_name(std::string_view buffer);

class CommandDecoder {
 public:
  // `buffer` begins at the first byte not yet consumed. After kNeedMore, call again with the same
  // bytes followed by more, at any address.
  // `size`: the most bytes that the command may have. It may grow from one call to the next.
  enum class FrameSize : std::uint8_t {
    kFull,      // limits::kFrameMax
    kNewcomer,  // limits::kNewcomerFrameMax
  };
  DecodedCommand decode(std::string_view buffer, FrameSize size = FrameSize::kFull);

 private:
  struct Slice {
    std::uint32_t offset;
    std::uint32_t length;
  };
  enum class HeaderStatus : std::uint8_t { kRead, kNeedMore, kMalformed, kFrameTooLong };
  enum class LineStatus : std::uint8_t { kSplit, kUnbalanced, kTooManyArgs };
  // A header: "<mark>digits CRLF".
  struct Header {
    HeaderStatus status = HeaderStatus::kNeedMore;
    std::uint64_t number = 0;
    std::size_t end = 0;  // The offset after the CRLF.
  };

  DecodedCommand decode_array(std::string_view buffer);
  DecodedCommand decode_inline(std::string_view buffer);
  [[nodiscard]] DecodedCommand complete(std::size_t consumed) const;
  [[nodiscard]] Header read_header(std::string_view buffer, std::size_t at) const;
  [[nodiscard]] DecodedCommand result_of(HeaderStatus status) const;
  [[nodiscard]] DecodedCommand frame_too_long() const;
  LineStatus split_line(std::string_view line);
  bool unquote_word(std::string_view line, std::size_t& at);
  void start_over();

  std::size_t frame_max_ = 0;  // Of the present call.
  // Progress within the command at the front of the buffer.
  std::size_t position_ = 0;  // After what was decoded (array) or searched for a line end (inline).
  std::size_t expected_ = 0;  // Arguments announced.
  bool counted_ = false;      // The *N header was read.
  std::vector<Slice> slices_;  // Arguments so far.
  std::vector<std::string_view> args_;
  std::string unquoted_;  // Holds quoted inline words.
};

}  // namespace pawl::wire

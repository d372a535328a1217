// Bytes from a client into commands: RESP arrays of bulk strings, and inline lines as telnet sends
// them.
//
//   wire::CommandDecoder decoder;                        // one per connection
//   for (;;) {
//     const auto command = decoder.decode(unread);       // a view that begins after the last complete
//     command if (command.status != DecodeStatus::kComplete) break; if (!command.args.empty())
//     serve(command.args);    // empty: a blank line or *0; skip it unread.remove_prefix(command.consumed);
//   }
//
// A frame is valid when it is
//   *N CRLF, then N times: $L CRLF, L bytes, CRLF        N ≤ limits::kFrameArgsMax, decimal, no sign, no
//   leading zero or a line that ends in LF or CRLF: words between spaces, "…" with \n \r \t \b \a \\ \" \xHH,
//   '…' with \'
// and at most limits::kFrameMax bytes in all. Sizes are checked when they are announced, before
// anything is allocated or waited for. A line that begins with POST or Host: is an HTTP request
// that a web page was tricked into sending; it ends the connection, and so does the beginning of a
// TLS handshake.
//
// No I/O, no clock. Fed byte by byte it does a bounded amount of work per call: finished arguments
// are remembered by offset, so the buffer may move between calls.
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
  std::size_t consumed = 0;  // bytes of this command; 0 unless complete
  // Views into the buffer (of quoted inline words: into the decoder); valid until the next
  // decode().
  std::span<const std::string_view> args;
  // Set on a protocol error: answer it, then close the connection. Further decoding is meaningless.
  ErrorCode error = ErrorCode::kErr;
  std::string_view message;  // lives as long as the program
};

class CommandDecoder {
 public:
  // `buffer` starts at the first byte not yet consumed. After kNeedMore, call again with the same
  // bytes and more behind them, at any address.
  DecodedCommand decode(std::string_view buffer);

 private:
  struct Slice {
    std::uint32_t offset;
    std::uint32_t length;
  };
  enum class HeaderStatus : std::uint8_t { kRead, kNeedMore, kMalformed, kFrameTooLong };
  enum class LineStatus : std::uint8_t { kSplit, kUnbalanced, kTooManyArgs };
  // One "<mark>digits CRLF" header.
  struct Header {
    HeaderStatus status = HeaderStatus::kNeedMore;
    std::uint64_t number = 0;
    std::size_t end = 0;  // offset behind the CRLF
  };

  DecodedCommand decode_array(std::string_view buffer);
  DecodedCommand decode_inline(std::string_view buffer);
  [[nodiscard]] DecodedCommand complete(std::size_t consumed) const;
  static Header read_header(std::string_view buffer, std::size_t at);
  static DecodedCommand unread(HeaderStatus status);
  LineStatus split_line(std::string_view line);
  bool unquote_word(std::string_view line, std::size_t& at);
  void start_over();

  // Progress within the command at the front of the buffer.
  std::size_t position_ =
      0;  // behind the last thing understood (array), or behind what was searched (inline)
  std::size_t expected_ = 0;   // arguments announced
  bool counted_ = false;       // the *N header was read
  std::vector<Slice> slices_;  // arguments so far
  std::vector<std::string_view> args_;
  std::string unquoted_;  // holds quoted inline words
};

}  // namespace pawl::wire

#include "wire/command_decoder.h"

#include <algorithm>
#include <limits>

#include "base/limits.h"
#include "wire/text.h"

namespace pawl::wire {
namespace {

constexpr std::size_t kDigitsMax = 10;
// 10,000 connections must not each keep the memory of a large MRENEW.
constexpr std::size_t kKeptCapacity = 64;

static_assert(limits::kFrameMax == 65536 && limits::kFrameArgsMax == 2048 &&
                  limits::kNewcomerFrameMax == 1024,
              "the messages below name them");
constexpr std::string_view kFrameTooLong = "a command takes at most 65536 bytes in all";
constexpr std::string_view kNewcomerFrameTooLong =
    "a command takes at most 1024 bytes in all until the connection has authenticated";
constexpr std::string_view kTooManyArgs = "a command takes at most 2048 arguments";
constexpr std::string_view kBadLength = "Protocol error: expected a decimal length and CRLF";
constexpr std::string_view kNoDollar = "Protocol error: expected '$' and a bulk string";
constexpr std::string_view kNoLineEnd = "Protocol error: expected CRLF after a bulk string";
constexpr std::string_view kQuotes = "Protocol error: unbalanced quotes in request";
constexpr std::string_view kHttp = "Protocol error: this port speaks RESP, not HTTP";
constexpr std::string_view kTls = "Protocol error: this port does not speak TLS";

DecodedCommand need_more() {
  return {};
}

DecodedCommand refused(ErrorCode code, std::string_view message) {
  return {.status = DecodeStatus::kProtocolError,
          .consumed = 0,
          .args = {},
          .error = code,
          .message = message};
}
DecodedCommand too_long(std::string_view message) {
  return refused(ErrorCode::kTooLong, message);
}
DecodedCommand malformed(std::string_view message) {
  return refused(ErrorCode::kErr, message);
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool begins_like_http(std::string_view buffer) {
  return is_word(buffer.substr(0, 4), "POST") || is_word(buffer.substr(0, 5), "HOST:");
}

// A record of the type "handshake", of any version.
bool begins_like_tls(std::string_view buffer) {
  return buffer.starts_with("\x16\x03");
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char upper = to_upper(c);
  return upper >= 'A' && upper <= 'F' ? upper - 'A' + 10 : -1;
}

char unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Returns one character of a quoted word at `at`, unescaped, and moves `at` after it.
char quoted_character(std::string_view line, std::size_t& at, char quote) {
  const char c = line[at++];
  if (c != '\\' || at == line.size()) return c;
  if (quote == '\'') return line[at] == '\'' ? line[at++] : c;
  if (line[at] == 'x' && at + 2 < line.size() && hex_digit(line[at + 1]) >= 0 &&
      hex_digit(line[at + 2]) >= 0) {
    const int byte = hex_digit(line[at + 1]) * 16 + hex_digit(line[at + 2]);
    at += 3;
    return static_cast<char>(byte);
  }
  return unescaped(line[at++]);
}

}  // namespace

DecodedCommand CommandDecoder::decode(std::string_view buffer, FrameSize size) {
  frame_max_ = size == FrameSize::kFull ? limits::kFrameMax : limits::kNewcomerFrameMax;
  if (args_.capacity() > kKeptCapacity) std::vector<std::string_view>().swap(args_);
  if (buffer.empty()) return need_more();
  const DecodedCommand decoded =
      buffer.front() == '*' ? decode_array(buffer) : decode_inline(buffer);
  if (decoded.status != DecodeStatus::kNeedMore) start_over();
  return decoded;
}

std::string_view peek_name(std::string_view buffer) {
  if (!buffer.starts_with('*')) {
    const auto begin = std::find_if_not(buffer.begin(), buffer.end(), is_space);
    const auto end = std::find_if(begin, buffer.end(), is_space);
    if (end == buffer.end()) return {};  // The rest of the word may still be to come.
    return {begin, end};
  }
  const std::size_t array_end = buffer.substr(0, kDigitsMax + 3).find("\r\n$");
  if (array_end == std::string_view::npos) return {};
  buffer.remove_prefix(array_end + 3);
  std::size_t size = 0, digits = 0;
  for (; digits < std::min(buffer.size(), kDigitsMax) && is_digit(buffer[digits]); ++digits)
    size = size * 10 + static_cast<std::size_t>(buffer[digits] - '0');
  if (digits == 0 || buffer.substr(digits, 2) != "\r\n") return {};
  buffer.remove_prefix(digits + 2);
  return size <= buffer.size() ? buffer.substr(0, size) : std::string_view{};
}

void CommandDecoder::start_over() {
  position_ = 0;
  expected_ = 0;
  counted_ = false;
  slices_.clear();
  if (slices_.capacity() > kKeptCapacity) std::vector<Slice>().swap(slices_);
}

// Never reads or waits for a byte beyond frame_max_, so kNeedMore means that fewer have arrived.
// Inlined, as there is one before every argument.
[[gnu::always_inline]] inline CommandDecoder::Header CommandDecoder::read_header(
    std::string_view buffer, std::size_t at) const {
  const std::size_t begin = at + 1;
  const std::size_t readable = std::min(buffer.size(), frame_max_ - 1);
  const std::size_t digits_end = std::min(readable, begin + kDigitsMax);
  std::uint64_t number = 0;
  std::size_t i = begin;
  for (; i < digits_end && is_digit(buffer[i]); ++i)
    number = number * 10 + static_cast<std::uint64_t>(buffer[i] - '0');
  if (i > begin + 1 && buffer[begin] == '0') return {.status = HeaderStatus::kMalformed};
  if (i >= readable) {
    return {.status = i + 1 >= frame_max_ ? HeaderStatus::kFrameTooLong : HeaderStatus::kNeedMore};
  }
  if (i == begin || buffer[i] != '\r') return {.status = HeaderStatus::kMalformed};
  if (i + 1 >= buffer.size()) return {.status = HeaderStatus::kNeedMore};
  if (buffer[i + 1] != '\n') return {.status = HeaderStatus::kMalformed};
  return {.status = HeaderStatus::kRead, .number = number, .end = i + 2};
}

DecodedCommand CommandDecoder::result_of(HeaderStatus status) const {
  switch (status) {
    case HeaderStatus::kNeedMore:
      return need_more();
    case HeaderStatus::kFrameTooLong:
      return frame_too_long();
    default:
      return malformed(kBadLength);
  }
}

DecodedCommand CommandDecoder::frame_too_long() const {
  return too_long(frame_max_ == limits::kFrameMax ? kFrameTooLong : kNewcomerFrameTooLong);
}

DecodedCommand CommandDecoder::decode_array(std::string_view buffer) {
  if (!counted_) {
    const Header header = read_header(buffer, 0);
    if (header.status != HeaderStatus::kRead) return result_of(header.status);
    if (header.number > limits::kFrameArgsMax) return too_long(kTooManyArgs);
    expected_ = static_cast<std::size_t>(header.number);
    counted_ = true;
    position_ = header.end;
  }
  while (slices_.size() < expected_) {
    if (position_ >= frame_max_) return frame_too_long();
    if (position_ >= buffer.size()) return need_more();
    if (buffer[position_] != '$') return malformed(kNoDollar);
    const Header header = read_header(buffer, position_);
    if (header.status != HeaderStatus::kRead) return result_of(header.status);
    if (header.number + header.end + 2 > frame_max_) return frame_too_long();
    const std::size_t end = header.end + static_cast<std::size_t>(header.number);
    if (buffer.size() < end + 2) return need_more();
    if (buffer[end] != '\r' || buffer[end + 1] != '\n') return malformed(kNoLineEnd);
    slices_.push_back(
        {static_cast<std::uint32_t>(header.end), static_cast<std::uint32_t>(header.number)});
    position_ = end + 2;
  }
  args_.resize(slices_.size());
  for (std::size_t i = 0; i < args_.size(); ++i)
    args_[i] = {buffer.data() + slices_[i].offset, slices_[i].length};
  return complete(position_);
}

DecodedCommand CommandDecoder::decode_inline(std::string_view buffer) {
  if (begins_like_http(buffer)) return malformed(kHttp);
  if (begins_like_tls(buffer)) return malformed(kTls);
  const std::string_view frame = buffer.substr(0, frame_max_);
  const std::size_t end = frame.find('\n', position_);
  if (end == std::string_view::npos) {
    if (frame.size() == frame_max_) return frame_too_long();
    position_ = frame.size();
    return need_more();
  }
  switch (split_line(frame.substr(0, end))) {
    case LineStatus::kUnbalanced:
      return malformed(kQuotes);
    case LineStatus::kTooManyArgs:
      return too_long(kTooManyArgs);
    case LineStatus::kSplit:
      break;
  }
  return complete(end + 1);
}

DecodedCommand CommandDecoder::complete(std::size_t consumed) const {
  return {.status = DecodeStatus::kComplete,
          .consumed = consumed,
          .args = args_,
          .error = ErrorCode::kErr,
          .message = {}};
}

CommandDecoder::LineStatus CommandDecoder::split_line(std::string_view line) {
  args_.clear();
  unquoted_.clear();
  for (std::size_t at = 0;;) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return LineStatus::kSplit;
    if (args_.size() == limits::kFrameArgsMax) return LineStatus::kTooManyArgs;
    if (line[at] == '"' || line[at] == '\'') {
      if (!unquote_word(line, at)) return LineStatus::kUnbalanced;
    } else {
      const std::size_t begin = at;
      while (at < line.size() && !is_space(line[at])) ++at;
      args_.push_back(line.substr(begin, at - begin));
    }
  }
}

bool CommandDecoder::unquote_word(std::string_view line, std::size_t& at) {
  unquoted_.reserve(
      line.size());  // No later word moves an earlier one: unquoting never makes text longer.
  const std::size_t begin = unquoted_.size();
  const char quote = line[at++];
  while (at < line.size() && line[at] != quote)
    unquoted_.push_back(quoted_character(line, at, quote));
  if (at >= line.size()) return false;
  ++at;
  if (at < line.size() && !is_space(line[at])) return false;
  args_.push_back(std::string_view(unquoted_).substr(begin));
  return true;
}

}  // namespace pawl::wire

#include "wire/reply_decoder.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace pawl::wire {
namespace {

constexpr std::size_t kLineMax = 64 * 1024;  // Of simple strings, errors and numbers.
constexpr std::size_t kReservedAtOnce = 64;  // A header may announce more items than ever arrive.
constexpr std::size_t kVerbatimPrefix = 4;   // "txt:"

constexpr std::string_view kReplyLineEnd = "expected CRLF at the end of a line";
constexpr std::string_view kLineTooLong = "a line of a reply is longer than 65536 bytes";
constexpr std::string_view kBadNumber = "expected a number";
constexpr std::string_view kBadType = "not a type of RESP that Pawl reads";
constexpr std::string_view kBadNull = "malformed null or boolean";
constexpr std::string_view kBadPush = "a push inside another reply";
constexpr std::string_view kTooLarge = "a reply is larger than the limit";
constexpr std::string_view kTooDeep = "a reply is nested too deeply";

template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc{} || stop != end) return std::nullopt;
  return number;
}

Value text_of(Value::Kind kind, std::string_view text) {
  Value value = Value::of(text);
  value.kind = kind;
  return value;
}

}  // namespace

DecodedReply ReplyDecoder::decode(std::string_view buffer) {
  DecodedReply reply;
  while (reply.consumed < buffer.size()) {
    const Progress step = this->step(buffer.substr(reply.consumed));
    if (step.status == DecodeStatus::kNeedMore) break;
    if (step.status == DecodeStatus::kProtocolError) {
      start_over();
      reply.status = step.status;
      reply.message = step.message;
      break;
    }
    searched_ = 0;
    reply.consumed += step.consumed;
    if (finished_) {
      reply.status = DecodeStatus::kComplete;
      reply.value = std::move(done_);
      start_over();
      break;
    }
  }
  return reply;
}

void ReplyDecoder::start_over() {
  open_.clear();
  done_ = Value{};
  finished_ = false;
  searched_ = 0;
  cost_ = 0;
}

ReplyDecoder::Progress ReplyDecoder::refused(std::string_view message) {
  return {.status = DecodeStatus::kProtocolError, .consumed = 0, .message = message};
}

ReplyDecoder::Progress ReplyDecoder::step(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, kLineMax);
  const std::size_t end = head.find('\n', searched_);
  if (end == std::string_view::npos) {
    if (head.size() == kLineMax) return refused(kLineTooLong);
    searched_ = head.size();
    return {};
  }
  if (end < 2 || bytes[end - 1] != '\r') return refused(kReplyLineEnd);
  const std::string_view line = bytes.substr(1, end - 2);
  switch (bytes.front()) {
    case '$':
    case '=':
    case '!':
      return blob(line, bytes, end + 1);
    case '*':
    case '~':
    case '%':
    case '>':
    case '|':
      return container(bytes.front(), line, end + 1);
    default:
      return scalar(bytes.front(), line, end + 1);
  }
}

ReplyDecoder::Progress ReplyDecoder::scalar(char mark, std::string_view line,
                                            std::size_t consumed) {
  Value value;
  switch (mark) {
    case '+':
      return put(text_of(Value::Kind::kSimple, line), consumed);
    case '-':
      return put(text_of(Value::Kind::kError, line), consumed);
    case ':': {
      const auto number = number_from<std::int64_t>(line);
      return number ? put(Value::of(*number), consumed) : refused(kBadNumber);
    }
    case ',': {
      const auto number = number_from<double>(line);
      if (!number) return refused(kBadNumber);
      value.kind = Value::Kind::kReal;
      value.real = *number;
      return put(std::move(value), consumed);
    }
    case '#':
      if (line != "t" && line != "f") return refused(kBadNull);
      value.kind = Value::Kind::kBoolean;
      value.integer = line == "t" ? 1 : 0;
      return put(std::move(value), consumed);
    case '_':
      return line.empty() ? put(Value::null(), consumed) : refused(kBadNull);
    default:
      return refused(kBadType);
  }
}

ReplyDecoder::Progress ReplyDecoder::blob(std::string_view line, std::string_view bytes,
                                          std::size_t header) {
  const char mark = bytes.front();
  if (mark == '$' && line == "-1") return put(Value::null(), header);
  const auto length = number_from<std::uint64_t>(line);
  if (!length) return refused(kBadNumber);
  if (*length > limits_.bytes || cost_ + *length > limits_.bytes) return refused(kTooLarge);
  const std::size_t end = header + static_cast<std::size_t>(*length);
  if (bytes.size() < end + 2) return {};
  if (bytes[end] != '\r' || bytes[end + 1] != '\n') return refused(kReplyLineEnd);
  std::string_view text = bytes.substr(header, end - header);
  if (mark == '=') {
    if (text.size() < kVerbatimPrefix || text[kVerbatimPrefix - 1] != ':') return refused(kBadType);
    text.remove_prefix(kVerbatimPrefix);
  }
  return put(text_of(mark == '!' ? Value::Kind::kError : Value::Kind::kText, text), end + 2);
}

ReplyDecoder::Progress ReplyDecoder::container(char mark, std::string_view line,
                                               std::size_t consumed) {
  if (mark == '*' && line == "-1") return put(Value::null(), consumed);
  const auto count = number_from<std::uint64_t>(line);
  if (!count) return refused(kBadNumber);
  if (*count > limits_.bytes / sizeof(Value) / 2) return refused(kTooLarge);
  const bool pairs = mark == '%' || mark == '|';
  const std::size_t items = static_cast<std::size_t>(*count) * (pairs ? 2 : 1);
  if (cost_ + items * sizeof(Value) > limits_.bytes) return refused(kTooLarge);
  if (open_.size() >= limits_.depth) return refused(kTooDeep);
  if (mark == '>' && !open_.empty()) return refused(kBadPush);

  Open open{.value = {}, .left = items, .attribute = mark == '|'};
  open.value.kind = pairs         ? Value::Kind::kMap
                    : mark == '>' ? Value::Kind::kPush
                                  : Value::Kind::kArray;
  if (items == 0)
    return open.attribute ? Progress{DecodeStatus::kComplete, consumed, {}}
                          : put(open.value, consumed);
  cost_ += items * sizeof(Value);
  open.value.items.reserve(std::min(items, kReservedAtOnce));
  open_.push_back(std::move(open));
  return {DecodeStatus::kComplete, consumed, {}};
}

// Adds a finished value to its container, and closes every container that it completes.
ReplyDecoder::Progress ReplyDecoder::put(Value value, std::size_t consumed) {
  cost_ += value.text.size();
  if (cost_ > limits_.bytes) return refused(kTooLarge);
  const Progress done{DecodeStatus::kComplete, consumed, {}};
  while (!open_.empty()) {
    Open& parent = open_.back();
    parent.value.items.push_back(std::move(value));
    if (--parent.left > 0) return done;
    const bool attribute = parent.attribute;
    value = std::move(parent.value);
    open_.pop_back();
    if (attribute)
      return done;  // It describes the value that follows and is not part of the reply.
  }
  done_ = std::move(value);
  finished_ = true;
  return done;
}

}  // namespace pawl::wire

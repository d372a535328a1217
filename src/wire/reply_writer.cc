#include "wire/reply_writer.h"

#include <charconv>

namespace pawl::wire {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

}  // namespace

void ReplyWriter::header(char mark, std::uint64_t number) {
  char raw[24];
  raw[0] = mark;
  char* end = std::to_chars(raw + 1, raw + sizeof(raw) - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out_.append(raw, static_cast<std::size_t>(end - raw));
}

// A line break inside a line would make one reply look like two.
void ReplyWriter::line(std::string_view text) {
  const std::size_t begin = out_.size();
  out_.append(text);
  for (std::size_t i = begin; i < out_.size(); ++i) {
    if (out_[i] == '\r' || out_[i] == '\n') out_[i] = ' ';
  }
}

void ReplyWriter::simple(std::string_view text) {
  out_.push_back('+');
  line(text);
  out_.append(kLineEnd);
}

void ReplyWriter::error(ErrorCode code, std::string_view text) {
  out_.push_back('-');
  out_.append(to_text(code));
  if (!text.empty()) out_.push_back(' ');
  line(text);
  out_.append(kLineEnd);
}

void ReplyWriter::integer(std::int64_t value) {
  char raw[24];
  raw[0] = ':';
  char* end = std::to_chars(raw + 1, raw + sizeof(raw) - 2, value).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out_.append(raw, static_cast<std::size_t>(end - raw));
}

void ReplyWriter::bulk(std::string_view bytes) {
  header('$', bytes.size());
  out_.append(bytes);
  out_.append(kLineEnd);
}

void ReplyWriter::null() {
  out_.append(protocol_ == Protocol::kResp3 ? "_\r\n" : "$-1\r\n");
}

void ReplyWriter::not_obtained() {
  out_.append(protocol_ == Protocol::kResp3 ? "_\r\n" : "*-1\r\n");
}

void ReplyWriter::boolean(bool value) {
  if (protocol_ == Protocol::kResp3) {
    out_.append(value ? "#t\r\n" : "#f\r\n");
  } else {
    out_.append(value ? ":1\r\n" : ":0\r\n");
  }
}

void ReplyWriter::real(double value) {
  char raw[64];
  const char* end = std::to_chars(raw, raw + sizeof(raw), value).ptr;
  const std::string_view digits(raw, static_cast<std::size_t>(end - raw));
  if (protocol_ == Protocol::kResp2) return bulk(digits);
  out_.push_back(',');
  out_.append(digits);
  out_.append(kLineEnd);
}

void ReplyWriter::verbatim(std::string_view text) {
  if (protocol_ == Protocol::kResp2) return bulk(text);
  header('=', text.size() + 4);
  out_.append("txt:");
  out_.append(text);
  out_.append(kLineEnd);
}

void ReplyWriter::map(std::size_t pairs) {
  if (protocol_ == Protocol::kResp3) {
    header('%', pairs);
  } else {
    header('*', 2 * pairs);
  }
}

void ReplyWriter::push(std::size_t items) {
  header(protocol_ == Protocol::kResp3 ? '>' : '*', items);
}

}  // namespace pawl::wire

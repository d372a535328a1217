#include "etcd/grpc.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/assert.h"
#include "base/limits.h"

namespace pawl::etcd {
namespace {

// The value of a hexadecimal digit, or -1.
int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_text(const GrpcStatus& status) {
  if (!status.code) return status.text;
  return "code " + std::to_string(*status.code) + (status.text.empty() ? "" : ": " + status.text);
}

void put_frame(std::string& out, std::string_view message) {
  PAWL_ASSERT(message.size() <= UINT32_MAX);
  out.push_back('\0');
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(message.size() >> shift & 0xff));
  out.append(message);
}

bool FrameReader::read_head() {
  if (head_[0] != '\0') {
    error_ = "the answer is compressed, or no gRPC";
    return false;
  }
  left_ = 0;
  for (std::size_t i = 1; i < kHeadBytes; ++i)
    left_ = left_ << 8 | static_cast<unsigned char>(head_[i]);
  if (left_ <= message_max_) return true;
  error_ = "a message of " + std::to_string(left_) + " bytes; the limit is " +
           std::to_string(message_max_);
  return false;
}

bool FrameReader::receive(std::string_view bytes, std::vector<std::string>& messages) {
  PAWL_ASSERT(error_.empty());
  while (!bytes.empty()) {
    if (head_.size() < kHeadBytes) {
      const std::size_t count = std::min(kHeadBytes - head_.size(), bytes.size());
      head_.append(bytes.substr(0, count));
      bytes.remove_prefix(count);
      if (head_.size() < kHeadBytes) return true;
      if (!read_head()) return false;
    }
    const std::size_t count = std::min(left_, bytes.size());
    message_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    left_ -= count;
    if (left_ > 0) return true;
    messages.push_back(std::move(message_));
    message_.clear();
    head_.clear();
  }
  return true;
}

std::optional<std::uint32_t> read_grpc_code(std::string_view value) {
  std::uint32_t code = 0;
  const char* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, code);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return code;
}

std::string read_grpc_text(std::string_view value) {
  std::string text;
  for (std::size_t i = 0; i < value.size() && text.size() < limits::kEtcdTextMax; ++i) {
    char c = value[i];
    if (c == '%' && i + 2 < value.size()) {
      const int high = hex_value(value[i + 1]);
      const int low = hex_value(value[i + 2]);
      if (high >= 0 && low >= 0) {
        c = static_cast<char>(high << 4 | low);
        i += 2;
      }
    }
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

std::string grpc_timeout(Nanos time) {
  constexpr std::int64_t kLongest = 99'999'999;  // At most eight digits.
  const std::int64_t micros = std::chrono::ceil<std::chrono::microseconds>(time).count();
  return std::to_string(std::clamp<std::int64_t>(micros, 1, kLongest)) + "u";
}

}  // namespace pawl::etcd

// What gRPC adds to HTTP/2: the frame of a message, the status of a call, the spelling of a
// deadline.
//
// A frame is a byte that says whether the message is compressed (never, here), its length as a
// big-endian u32, and the message. The status is in the headers `grpc-status` and `grpc-message` of
// the trailers, or of the first headers if the answer has no body.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace pawl::etcd {

// The codes that Pawl tells apart; there are others.
enum class GrpcCode : std::uint8_t {
  kOk = 0,
  kInvalidArgument = 3,
  kPermissionDenied = 7,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kUnauthenticated = 16,
};

// How a call ended.
struct GrpcStatus {
  // Nothing: the connection or the stream ended before the server said how, so what it did is
  // unknown.
  std::optional<std::uint32_t> code;
  std::string text;  // For people; of a server, or why there is no code.

  [[nodiscard]] bool is(GrpcCode wanted) const {
    return code == static_cast<std::uint32_t>(wanted);
  }
};
// "code 14: etcdserver: no leader"
[[nodiscard]] std::string to_text(const GrpcStatus& status);

// Appends the frame of a message.
void put_frame(std::string& out, std::string_view message);

// Takes frames apart, however the bytes are cut.
class FrameReader {
 public:
  explicit FrameReader(std::size_t message_max) : message_max_(message_max) {}

  // Appends every message that is complete to `messages`. False: the bytes are no frames, or a
  // message is too large; error() says which, and nothing may be passed any more.
  [[nodiscard]] bool receive(std::string_view bytes, std::vector<std::string>& messages);
  [[nodiscard]] const std::string& error() const { return error_; }
  // Whether a message has begun that is not complete.
  [[nodiscard]] bool in_message() const { return !head_.empty(); }

 private:
  static constexpr std::size_t kHeadBytes = 5;
  [[nodiscard]] bool read_head();

  std::size_t message_max_;
  std::string head_;
  std::size_t left_ = 0;  // Of the message, once the head is complete.
  std::string message_;
  std::string error_;
};

// The value of the header `grpc-status`; nothing if it is no number.
[[nodiscard]] std::optional<std::uint32_t> read_grpc_code(std::string_view value);
// The value of `grpc-message`, which is percent-encoded, as one printable line of
// limits::kEtcdTextMax bytes at most.
[[nodiscard]] std::string read_grpc_text(std::string_view value);
// The value of `grpc-timeout`: "1000000u".
[[nodiscard]] std::string grpc_timeout(Nanos time);

}  // namespace pawl::etcd

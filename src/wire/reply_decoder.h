// Decodes bytes from a server into replies: RESP2 and RESP3, pushes included.
//
//   wire::ReplyDecoder decoder;  // one per connection
//   for (;;) {
//     auto reply = decoder.decode(unread);
//     unread.remove_prefix(reply.consumed);  // also after kNeedMore: the decoder keeps the parts
//     if (reply.status != DecodeStatus::kComplete) break;
//     take(std::move(reply.value));
//   }
//
// Big numbers and streamed types are a protocol error: Pawl does not send them. Attributes are
// skipped. Depth, item count and bytes are bounded, and checked before anything is allocated.
#pragma once

#include <string_view>
#include <vector>

#include "wire/command_decoder.h"
#include "wire/value.h"

namespace pawl::wire {

struct ReplyLimits {
  std::size_t depth = 16;
  std::size_t bytes = 64 * 1024 * 1024;  // Of one reply in memory, the tree included.
};

struct DecodedReply {
  DecodeStatus status = DecodeStatus::kNeedMore;
  std::size_t consumed = 0;
  Value value;               // Set if complete.
  std::string_view message;  // Set on a protocol error: close the connection.
};

class ReplyDecoder {
 public:
  explicit ReplyDecoder(ReplyLimits limits = {}) : limits_(limits) {}

  // `buffer` begins after what earlier calls consumed.
  DecodedReply decode(std::string_view buffer);

 private:
  // A container whose items are still arriving.
  struct Open {
    Value value;
    std::size_t left;
    bool attribute;  // To be dropped when it is complete.
  };
  // The result of decoding one scalar, or the header of one container.
  struct Progress {
    DecodeStatus status = DecodeStatus::kNeedMore;
    std::size_t consumed = 0;
    std::string_view message;
  };

  Progress step(std::string_view bytes);
  Progress scalar(char mark, std::string_view line, std::size_t consumed);
  Progress blob(std::string_view line, std::string_view bytes, std::size_t header);
  Progress container(char mark, std::string_view line, std::size_t consumed);
  Progress put(Value value, std::size_t consumed);
  static Progress refused(std::string_view message);
  void start_over();

  const ReplyLimits limits_;
  std::vector<Open> open_;  // Outermost first.
  Value done_;              // The finished reply.
  bool finished_ = false;
  std::size_t searched_ = 0;  // Bytes of the current line already searched for its end.
  std::size_t cost_ = 0;
};

}  // namespace pawl::wire

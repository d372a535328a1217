// Bytes from a server into replies: RESP2 and RESP3, pushes included.
//
//   wire::ReplyDecoder decoder;                       // one per connection
//   for (;;) {
//     auto reply = decoder.decode(unread);
//     unread.remove_prefix(reply.consumed);           // also when more is needed: finished parts are kept
//     inside if (reply.status != DecodeStatus::kComplete) break; take(std::move(reply.value));
//   }
//
// Not understood on purpose: big numbers and streamed types (a protocol error). Attributes are
// skipped. Depth, item count and bytes are bounded, and checked before anything is allocated.
#pragma once

#include <string_view>
#include <vector>

#include "wire/command_decoder.h"
#include "wire/value.h"

namespace pawl::wire {

struct ReplyLimits {
  std::size_t depth = 16;
  std::size_t bytes = 64 * 1024 * 1024;  // of one reply in memory, the tree included
};

struct DecodedReply {
  DecodeStatus status = DecodeStatus::kNeedMore;
  std::size_t consumed = 0;
  Value value;               // when complete
  std::string_view message;  // on a protocol error: close the connection
};

class ReplyDecoder {
 public:
  explicit ReplyDecoder(ReplyLimits limits = {}) : limits_(limits) {}

  // `buffer` starts behind what earlier calls consumed.
  DecodedReply decode(std::string_view buffer);

 private:
  // A container whose items are still arriving.
  struct Open {
    Value value;
    std::size_t left;
    bool attribute;  // to be dropped when it is finished
  };
  // One step: a scalar, or the header of a container.
  struct Step {
    DecodeStatus status = DecodeStatus::kNeedMore;
    std::size_t consumed = 0;
    std::string_view message;
  };

  Step step(std::string_view bytes);
  Step scalar(char mark, std::string_view line, std::size_t consumed);
  Step blob(std::string_view line, std::string_view bytes, std::size_t header);
  Step container(char mark, std::string_view line, std::size_t consumed);
  Step put(Value value, std::size_t consumed);
  static Step refused(std::string_view message);
  void start_over();

  const ReplyLimits limits_;
  std::vector<Open> open_;  // outermost first
  Value done_;              // the finished reply
  bool finished_ = false;
  std::size_t searched_ = 0;  // bytes of the current line already searched for its end
  std::size_t cost_ = 0;
};

}  // namespace pawl::wire

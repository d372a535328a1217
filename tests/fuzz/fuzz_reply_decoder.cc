// What a server, or something that pretends to be one, sends: however it is cut, the same replies
// come out, within the limits, and reading them as grants or pushes is harmless.
#include <memory>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "tests/fuzz/chunks.h"
#include "wire/events.h"
#include "wire/replies.h"
#include "wire/reply_decoder.h"

namespace pawl::fuzz {
namespace {

using wire::DecodeStatus;

constexpr wire::ReplyLimits kLimits{.depth = 8, .bytes = 1 << 20};

std::size_t depth(const wire::Value& value) {
  std::size_t deepest = 0;
  for (const auto& item : value.items) deepest = std::max(deepest, depth(item));
  return deepest + 1;
}

std::string described(const wire::Value& value) {
  PAWL_ASSERT(depth(value) <= kLimits.depth + 1);
  std::string text = to_string(value);
  const auto acquired = wire::read_acquire(value);
  text += acquired ? std::to_string(acquired->index()) : acquired.error().detail;
  if (const auto push = wire::read_wait_push(value)) text += push->request;
  if (const auto event = wire::read_event(value)) {
    text += to_text(event->id) + event->lock;
    PAWL_ASSERT(wire::event_id_from_text(to_text(event->id)) == event->id);
  }
  return text + "\n";
}

std::string transcript(std::string_view bytes, Cut cut) {
  std::string seen;
  wire::ReplyDecoder decoder(kLimits);
  Chunks chunks(cut, bytes);
  std::string unread;
  while (!bytes.empty()) {
    const std::size_t piece = chunks.next(bytes.size());
    unread.append(bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    for (;;) {
      const auto buffer = std::make_unique<char[]>(unread.size());
      unread.copy(buffer.get(), unread.size());
      const auto reply = decoder.decode({buffer.get(), unread.size()});
      PAWL_ASSERT(reply.consumed <= unread.size());
      unread.erase(0, reply.consumed);
      if (reply.status == DecodeStatus::kProtocolError) return seen.append(reply.message);
      if (reply.status == DecodeStatus::kNeedMore) break;
      seen += described(reply.value);
    }
  }
  return seen;
}

}  // namespace
}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pawl::fuzz::Cut;
  using pawl::fuzz::transcript;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = transcript(bytes, Cut::kWhole);
  PAWL_ASSERT(transcript(bytes, Cut::kMixed) == whole);
  if (size <= 4096) PAWL_ASSERT(transcript(bytes, Cut::kBytes) == whole);
  return 0;
}

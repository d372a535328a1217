// What etcd, or something that pretends to be it, sends: however it is cut, the decoders keep to
// their limits, every call ends exactly once, and the client stays usable.
//
// The first byte of an input says what the rest is: m, a message; h, bytes of an HTTP/2 connection;
// c, the same for a whole client; l, a head or an entry of the log, whose checksum is made right;
// g, what a guard reads: a policy and a fence.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "etcd/client.h"
#include "etcd/http2_connection.h"
#include "etcd/messages.h"
#include "guard/etcd/policy.h"
#include "store/cluster/log_copy.h"
#include "tests/fuzz/chunks.h"

namespace pawl::fuzz {
namespace {

using namespace etcd;
using namespace store::cluster;

void decode_all(std::string_view bytes) {
  if (const auto range = decode_range(bytes)) {
    PAWL_ASSERT(range->kvs.size() <= limits::kEtcdItemsMax);
    for (const KeyValue& kv : range->kvs)
      PAWL_ASSERT(kv.key.size() + kv.value.size() <= bytes.size());
  }
  if (const auto txn = decode_txn(bytes))
    PAWL_ASSERT(txn->responses.size() <= limits::kEtcdItemsMax);
  if (const auto watch = decode_watch(bytes))
    PAWL_ASSERT(watch->events.size() <= limits::kEtcdItemsMax);
  if (const auto status = decode_status(bytes))
    PAWL_ASSERT(status->errors.size() <= limits::kEtcdItemsMax);
  static_cast<void>(decode_compaction(bytes));
  static_cast<void>(decode_authenticate(bytes));
  if (const auto roles = decode_role_list(bytes))
    PAWL_ASSERT(roles->roles.size() <= limits::kEtcdItemsMax);
  if (const auto role = decode_role_get(bytes))
    PAWL_ASSERT(role->permissions.size() <= limits::kEtcdItemsMax);
}

// What is taken for a policy or a fence is spelled as the guard spells it, or comes to the same.
void read_guard(std::string_view bytes) {
  if (const auto policy = guard::parse_etcd_policy(bytes))
    PAWL_ASSERT(guard::parse_etcd_policy(guard::to_text(*policy)) == policy);
  if (const auto fence = guard::parse_etcd_fence(bytes))
    PAWL_ASSERT(guard::to_text(*fence) == bytes);
}

// Calls `take` with each piece of the bytes, in memory of exactly its size.
template <class Take>
void in_pieces(std::string_view bytes, Cut cut, Take&& take) {
  Chunks chunks(cut, bytes);
  while (!bytes.empty()) {
    const std::size_t size = chunks.next(bytes.size());
    const auto buffer = std::make_unique<char[]>(size);
    bytes.copy(buffer.get(), size);
    if (!take(std::string_view(buffer.get(), size))) return;
    bytes.remove_prefix(size);
  }
}

void run_connection(std::string_view bytes, Cut cut) {
  constexpr std::size_t kAnswerMax = 10'000;
  Http2Connection connection({.authority = "fuzz:2379", .answer_max = kAnswerMax});
  std::map<StreamId, int> ends;
  for (const bool stays_open : {false, true, false}) {
    const auto stream =
        connection.start({.path = "/a/b", .message = "ask", .stays_open = stays_open});
    if (stream) ends[*stream] = 0;
  }
  const auto take_events = [&] {
    for (const CallEvent& event : connection.take_events()) {
      PAWL_ASSERT(ends.contains(event.stream) && ends[event.stream] == 0);
      PAWL_ASSERT(event.message.size() <= kAnswerMax);
      if (event.kind == CallEvent::Kind::kEnded) ends[event.stream] += 1;
    }
  };
  static_cast<void>(connection.take_output());
  in_pieces(bytes, cut, [&](std::string_view piece) {
    const bool alive = connection.receive(piece);
    static_cast<void>(connection.take_output());
    take_events();
    return alive;
  });
  connection.end("the end of the input");
  take_events();
  for (const auto& [stream, count] : ends) PAWL_ASSERT(count == 1);
}

void read_log(std::string_view bytes) {
  std::string value(bytes);
  if (value.size() < 8) return;
  const std::uint32_t crc = crc32c(std::string_view(value).substr(8));
  std::memcpy(value.data() + 4, &crc, sizeof(crc));
  if (const auto head = decode_head(value)) PAWL_ASSERT(encode_head(*head).size() == kHeadBytes);
  const auto entry = decode_entry(value);
  if (!entry || entry->header.number == 0 || entry->header.number == UINT64_MAX) return;
  Head head;
  head.incarnation = entry->header.incarnation;
  head.first = entry->header.number;
  LogCopy copy(head, {});
  if (!copy.take(head.first, value)) return;
  head.last = head.first;
  head.last_crc = entry->crc;
  PAWL_ASSERT(copy.complete(head).has_value());
  PAWL_ASSERT(copy.index().live_bytes() <= value.size());
  const auto carried = carried_records(copy.index(), {{head.first, value}}, "");
  PAWL_ASSERT(carried && carried->size() == copy.index().live_bytes());
}

class NoNetwork final : public Network {
 public:
  void connect(std::size_t) override {}
  void send(std::size_t, std::string_view) override {}
  void close(std::size_t) override {}
};

void run_client(std::string_view bytes, Cut cut) {
  NoNetwork network;
  Client client({.endpoints = {"fuzz:2379"}, .user = "u", .password = "p"}, network);
  Instant now{std::chrono::hours(1)};
  client.transact(encode(TxnRequest{}));
  client.watch({.key = "a"});
  client.pump(now);
  client.on_connected(0, now);
  in_pieces(bytes, cut, [&](std::string_view piece) {
    client.on_received(0, piece, now);
    client.pump(now);
    PAWL_ASSERT(client.deadline() > now);
    now += Millis(1);
    static_cast<void>(client.take_events());
    return true;
  });
  client.on_closed(0, "the end of the input", now);
  client.pump(now);
  PAWL_ASSERT(client.deadline() > now);
}

}  // namespace
}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'm') decode_all(rest);
  if (data[0] == 'l') read_log(rest);
  if (data[0] == 'g') read_guard(rest);
  for (const Cut cut : {Cut::kWhole, Cut::kMixed}) {
    if (data[0] == 'h') run_connection(rest, cut);
    if (data[0] == 'c') run_client(rest, cut);
  }
  return 0;
}

#include "store/cluster/head.h"

#include "base/bytes.h"

namespace pawl::store::cluster {
namespace {
constexpr std::uint8_t kFormat = 1;
}

std::string encode(const Head& head) {
  std::string out;
  put_u8(out, kFormat);
  put_u8(out, static_cast<std::uint8_t>(head.state));
  put_u64(out, head.incarnation.value);
  put_u64(out, head.epoch);
  put_u64(out, head.number);
  put_u64(out, head.writer[0]);
  put_u64(out, head.writer[1]);
  put_u64(out, head.last);
  put_u64(out, head.covered);
  put_text(out, head.address);
  return out;
}

Result<Head> decode_head(std::string_view bytes) {
  ByteReader in(bytes);
  Head head;
  const std::uint8_t format = in.u8();
  const std::uint8_t state = in.u8();
  head.incarnation.value = in.u64();
  head.epoch = in.u64();
  head.number = in.u64();
  head.writer[0] = in.u64();
  head.writer[1] = in.u64();
  head.last = in.u64();
  head.covered = in.u64();
  head.address = in.text();
  if (!in.done() || format != kFormat || (state != 1 && state != 2))
    return Error{Code::kInvalid,
                 "the head of the shared log is damaged, or of a newer version of pawld"};
  head.state = static_cast<Head::State>(state);
  return head;
}

}  // namespace pawl::store::cluster

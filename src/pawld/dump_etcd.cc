// `pawld dump --store etcd`: prints what a cluster keeps in etcd. It only reads, so it may be used
// while pawld serve.
#include <fmt/format.h>

#include "base/hex.h"
#include "core/records.h"
#include "pawld/commands.h"
#include "pawld/etcd_access.h"
#include "pawld/exit_codes.h"
#include "pawld/open_store.h"

namespace pawl::pawld {
namespace {

void print(EtcdAccess& access) {
  const store::cluster::Head& head = *access.head();
  const bool active = head.state == store::cluster::HeadState::kActive;
  fmt::print("cluster {}: incarnation {}, epoch {}, write {}, {} {}\n", access.cluster(),
             to_hex(head.incarnation), head.epoch, head.n, active ? "active" : "resigned",
             head.address);
  const auto& index = access.index();
  fmt::print("log: entries {} to {}, {} bytes, {} of them live; batch {}, last token {}\n",
             head.first, head.last, index.bytes(), index.live_bytes(), head.sequence, head.covered);
  for (const auto& [key, value] : access.take_records())
    fmt::print("  {}\n", core::describe(key, value));
}

Result<void> dump(const Config& config) {
  auto access = EtcdAccess::open(config);
  if (!access) return access.error();
  if (auto read = (*access)->read(); !read) return read;
  if ((*access)->head() == nullptr)
    return Error{Code::kInvalid, "there is no store of this cluster in etcd"};
  print(**access);
  return {};
}

}  // namespace

int dump_etcd(const Options& options) {
  const auto dumped = dump(options.config);
  if (dumped) return kExitOk;
  fmt::print(stderr, "pawld: {}\n", with_advice(dumped.error(), options.config));
  return exit_code_of(dumped.error());
}

}  // namespace pawl::pawld

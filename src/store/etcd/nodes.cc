#include "store/etcd/nodes.h"

#include <utility>

#include "base/bytes.h"

namespace pawl::store::etcd_log {
namespace {

struct Report {
  std::uint64_t id = 0, count = 0, pid = 0;
  std::string role;
};

std::string encode_report(const Report& report) {
  std::string out;
  put_u64(out, report.id);
  put_u64(out, report.count);
  put_u64(out, report.pid);
  put_text(out, report.role);
  return out;
}

std::optional<Report> decode_report(std::string_view bytes) {
  ByteReader in(bytes);
  Report report;
  report.id = in.u64();
  report.count = in.u64();
  report.pid = in.u64();
  report.role = in.text();
  if (!in.done()) return std::nullopt;
  return report;
}

}  // namespace

std::string Nodes::report(std::string_view role) {
  const std::string value = encode_report({self_.id, ++count_, self_.pid, std::string(role)});
  return etcd::encode(etcd::TxnRequest{
      .compare = {},
      .success = {etcd::RangeRequest{.key = keys_.nodes(),
                                     .range_end = etcd::end_of_prefix(keys_.nodes()),
                                     .limit = kListedMax},
                  etcd::PutRequest{keys_.node(self_.address), value}},
      .failure = {}});
}

std::string Nodes::farewell() const {
  return etcd::encode(
      etcd::TxnRequest{.compare = {},
                       .success = {etcd::DeleteRangeRequest{keys_.node(self_.address)}},
                       .failure = {}});
}

void Nodes::take(const std::vector<etcd::ResponseOp>& responses, Instant now) {
  if (responses.empty()) return;
  const auto* found = std::get_if<etcd::RangeResponse>(&responses.front());
  if (found == nullptr) return;
  std::map<std::string, Known> known;
  taken_ = false;
  for (const etcd::KeyValue& kv : found->kvs) {
    if (kv.key.size() <= keys_.nodes().size()) continue;
    const std::string address = kv.key.substr(keys_.nodes().size());
    const auto before = known_.find(address);
    const bool same = before != known_.end() && before->second.value == kv.value;
    known[address] = {kv.value, same ? before->second.changed : now};
    // Read before the put of the same transaction: what this process has put last, unless another
    // one has since. A report from before this process says nothing.
    const auto report = decode_report(kv.value);
    if (address == self_.address && report && count_ > 1 && report->id != self_.id) taken_ = true;
  }
  known_ = std::move(known);
}

std::vector<ClusterView::Node> Nodes::list(Instant now) const {
  std::vector<ClusterView::Node> nodes;
  for (const auto& [address, known] : known_) {
    const auto report = decode_report(known.value);
    if (!report) continue;
    const bool silent = now - known.changed > kSilentAfter;
    nodes.push_back({.address = address,
                     .role = silent ? "silent" : report->role,
                     .pid = report->pid,
                     .is_self = report->id == self_.id});
  }
  return nodes;
}

}  // namespace pawl::store::etcd_log

// The keys of one cluster of pawld in etcd.
//
//   pawl/<cluster>/head            the head of the shared log (store/cluster/log_format.h)
//   pawl/<cluster>/log/<16 hex>    its entries, by number
//   pawl/<cluster>/node/<address>  for people: which pawld run (nodes.h)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::store::etcd_log {

class Keys {
 public:
  // `cluster` is_cluster_name().
  explicit Keys(std::string_view cluster) : prefix_("pawl/" + std::string(cluster) + "/") {}

  [[nodiscard]] std::string head() const { return prefix_ + "head"; }
  [[nodiscard]] std::string entry(std::uint64_t number) const;
  // The number in the key; nothing if it is not the key of an entry.
  [[nodiscard]] std::optional<std::uint64_t> entry_number(std::string_view key) const;
  [[nodiscard]] std::string nodes() const { return prefix_ + "node/"; }
  [[nodiscard]] std::string node(std::string_view address) const {
    return nodes() + std::string(address);
  }

 private:
  const std::string prefix_;
};

// 1 to 64 letters, digits, '.', '_' and '-'.
[[nodiscard]] bool is_cluster_name(std::string_view name);

}  // namespace pawl::store::etcd_log

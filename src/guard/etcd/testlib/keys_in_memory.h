// The part of etcd that guards use, in memory: keys with revisions, and transactions.
#pragma once

#include <map>
#include <string>

#include "etcd/messages.h"
#include "guard/etcd/calls.h"

namespace pawl::guard {

class KeysInMemory {
 public:
  struct Value {
    std::string value;
    std::int64_t create_revision = 0, mod_revision = 0, version = 0;
  };

  etcd::TxnResponse apply(const etcd::TxnRequest& request) {
    etcd::TxnResponse answer{.succeeded = true};
    for (const etcd::Compare& each : request.compare)
      answer.succeeded =
          answer.succeeded && std::visit([&](const auto& c) { return holds(c); }, each);
    ++revision_;
    ++transactions;
    for (const etcd::RequestOp& each : answer.succeeded ? request.success : request.failure)
      answer.responses.push_back(std::visit([&](const auto& op) { return run(op); }, each));
    return answer;
  }
  EtcdTransact as_function() {
    return [this](const etcd::TxnRequest& request, EtcdSending) -> Result<EtcdTransacted> {
      return EtcdTransacted{apply(request), false};
    };
  }
  void put(const std::string& key, const std::string& value) { run(etcd::PutRequest{key, value}); }
  [[nodiscard]] std::string get(const std::string& key) const {
    const auto found = keys.find(key);
    return found == keys.end() ? "" : found->second.value;
  }

  std::map<std::string, Value> keys;
  int transactions = 0;

 private:
  [[nodiscard]] const Value* find(const std::string& key) const {
    const auto found = keys.find(key);
    return found == keys.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool holds(const etcd::ValueIs& c) const {
    return find(c.key) != nullptr && find(c.key)->value == c.value;
  }
  [[nodiscard]] bool holds(const etcd::ValueIsBefore& c) const {
    return find(c.key) != nullptr && find(c.key)->value < c.value;
  }
  [[nodiscard]] bool holds(const etcd::ValueIsAfter& c) const {
    return find(c.key) != nullptr && find(c.key)->value > c.value;
  }
  [[nodiscard]] bool holds(const etcd::CreateRevisionIs& c) const {
    return (find(c.key) == nullptr ? 0 : find(c.key)->create_revision) == c.revision;
  }
  [[nodiscard]] bool holds(const etcd::ModRevisionIs& c) const {
    return (find(c.key) == nullptr ? 0 : find(c.key)->mod_revision) == c.revision;
  }
  etcd::ResponseOp run(const etcd::RangeRequest& op) {
    etcd::RangeResponse found;
    if (const Value* value = find(op.key))
      found.kvs.push_back(
          {op.key, value->value, value->create_revision, value->mod_revision, value->version});
    return found;
  }
  etcd::ResponseOp run(const etcd::PutRequest& op) {
    Value& value = keys[op.key];
    if (value.version == 0) value.create_revision = revision_;
    value.mod_revision = revision_;
    value.version += 1;
    value.value = op.value;
    return etcd::PutResponse{};
  }
  etcd::ResponseOp run(const etcd::DeleteRangeRequest& op) {
    if (op.range_end.empty())
      return etcd::DeleteRangeResponse{static_cast<std::int64_t>(keys.erase(op.key))};
    keys.erase(keys.lower_bound(op.key), keys.lower_bound(op.range_end));
    return etcd::DeleteRangeResponse{};
  }

  std::int64_t revision_ = 1;
};

}  // namespace pawl::guard

#include <fmt/format.h>

#include <utility>

#include "guard/etcd/calls.h"
#include "guard/etcd/connection.h"
#include "guard/etcd/health.h"
#include "guard/etcd/writer.h"
#include "pawl/etcd.h"

namespace pawl {

struct EtcdGuard::Connected {
  std::unique_ptr<guard::EtcdConnection> connection;
  guard::EtcdCalls calls;
};

EtcdGuard::EtcdGuard(EtcdOptions options) : options_(std::move(options)) {}

EtcdGuard::~EtcdGuard() = default;

std::string EtcdGuard::name() const {
  return fmt::format("etcd {}", options_.endpoints);
}

Result<EtcdGuard::Connected*> EtcdGuard::connect() {
  if (!connected_) {
    auto opened = guard::EtcdConnection::open(options_);
    if (!opened) return opened.error();
    guard::EtcdTransact transact = (*opened)->as_function();
    connected_ = std::make_unique<Connected>(
        Connected{*std::move(opened), guard::EtcdCalls(std::move(transact))});
  }
  return connected_.get();
}

GuardStrength EtcdGuard::strength() {
  const auto connected = connect();
  if (!connected) return {Strength::kBestEffort, connected.error().detail};
  guard::EtcdConnection& connection = *(*connected)->connection;
  auto weaknesses = guard::find_etcd_weaknesses(connection.endpoints());
  if (guard::find_etcd_access(connection, "", {}).open)
    weaknesses.push_back(guard::describe({.open = true}));
  return guard::to_etcd_strength(weaknesses);
}

Result<std::uint64_t> EtcdGuard::advance(std::string_view resource, std::uint64_t token,
                                         std::chrono::milliseconds) {
  const auto connected = connect();
  if (!connected) return connected.error();
  const auto answer = (*connected)->calls.advance(std::string(resource), token);
  if (!answer) return answer.error();
  if (!answer->text.empty()) return guard::to_error(*answer);
  return answer->max;
}

Result<Decision> EtcdGuard::check(std::string_view resource, std::uint64_t token) {
  const auto connected = connect();
  if (!connected) return connected.error();
  const auto answer = (*connected)->calls.check(std::string(resource), token);
  if (!answer) return answer.error();
  if (!answer->text.empty()) return guard::to_error(*answer);
  return guard::to_decision(*answer, token);
}

namespace {

Result<EtcdWrite> write_held(guard::EtcdCalls& calls, guard::HeldToken held,
                             std::vector<std::string> resources, std::vector<EtcdChange> changes,
                             EtcdWriteOptions options, std::chrono::milliseconds time_limit) {
  if (changes.empty()) return Error{Code::kInvalid, "a write has at least one change"};
  if (resources.empty()) return Error{Code::kInvalid, "a write names at least one resource"};
  guard::EtcdWriter writer(calls, std::move(held),
                           {.resources = std::move(resources),
                            .operation = options.operation,
                            .changes = std::move(changes),
                            .conditions = std::move(options.conditions)},
                           time_limit);
  const auto decision = writer.run();
  if (!decision) return decision.error();
  return EtcdWrite{*decision, writer.met()};
}

}  // namespace

Result<EtcdWrite> EtcdGuard::write_all(const Lease& lease, std::vector<std::string> resources,
                                       std::vector<EtcdChange> changes, EtcdWriteOptions options) {
  const auto connected = connect();
  if (!connected) return connected.error();
  return write_held((*connected)->calls, guard::held_by(lease), std::move(resources),
                    std::move(changes), std::move(options), options_.time_limit);
}

Result<EtcdWrite> EtcdGuard::write_all(std::uint64_t token, std::vector<std::string> resources,
                                       std::vector<EtcdChange> changes, EtcdWriteOptions options) {
  const auto connected = connect();
  if (!connected) return connected.error();
  return write_held((*connected)->calls, {.token = token}, std::move(resources), std::move(changes),
                    std::move(options), options_.time_limit);
}

Result<EtcdWrite> EtcdGuard::write(const Lease& lease, std::string_view resource,
                                   std::vector<EtcdChange> changes, EtcdWriteOptions options) {
  return write_all(lease, {std::string(resource)}, std::move(changes), std::move(options));
}

Result<EtcdWrite> EtcdGuard::write(std::uint64_t token, std::string_view resource,
                                   std::vector<EtcdChange> changes, EtcdWriteOptions options) {
  return write_all(token, {std::string(resource)}, std::move(changes), std::move(options));
}

}  // namespace pawl

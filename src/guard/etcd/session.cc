// One connection to etcd as a Session.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.h"
#include "guard/etcd/calls.h"
#include "guard/etcd/kind.h"
#include "guard/etcd/names.h"
#include "guard/etcd/scratch_log.h"
#include "guard_contract/parse.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

using End = EtcdAnswer::End;

constexpr std::size_t kMovedMax = 60;
constexpr int kAppendsMax = 1000;

Outcome outcome_of(const EtcdAnswer& answer) {
  static constexpr std::array kAnswers{Answer::kAdmitted,  Answer::kReplayed, Answer::kStale,
                                       Answer::kMissing,   Answer::kAhead,    Answer::kMalformed,
                                       Answer::kUnguarded, Answer::kAgain};
  return {kAnswers.at(static_cast<std::size_t>(answer.end)), answer.let_through, answer.text};
}

Outcome outcome_of(const Error& error) {
  if (error.code == Code::kUnknown) return {Answer::kUnknown, false, error.detail};
  return {error.code == Code::kUnavailable ? Answer::kAgain : Answer::kBroken, false, error.detail};
}

Outcome outcome_of(const Result<EtcdAnswer>& answer) {
  return answer ? outcome_of(*answer) : outcome_of(answer.error());
}

std::optional<std::uint64_t> none_if_zero(std::uint64_t fence) {
  return fence == 0 ? std::optional<std::uint64_t>{} : fence;
}

// The words of a command as etcdctl takes them: "double quotes" keep spaces together.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool quoted = false;
  bool open = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      if (quoted && !open) words.emplace_back();
      open = true;
    } else if (c == ' ' && !quoted) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  return words;
}

// put KEY VALUE, del KEY, del --prefix KEY.
Result<EtcdChange> to_change(std::string_view statement) {
  const std::vector<std::string> words = words_of(statement);
  if (words.size() == 3 && words[0] == "put") return EtcdChange(EtcdPut{words[1], words[2]});
  if (words.size() == 2 && words[0] == "del") return EtcdChange(EtcdDelete{words[1], false});
  if (words.size() == 3 && words[0] == "del" && words[1] == "--prefix")
    return EtcdChange(EtcdDelete{words[2], true});
  return Error{Code::kInvalid,
               "a change is put KEY VALUE, del KEY or del --prefix KEY, as etcdctl takes it"};
}

class EtcdSession final : public Session {
 public:
  EtcdSession(const EtcdOptions& options, std::shared_ptr<EtcdConnection> connection,
              EtcdScope scope)
      : connection_(std::move(connection)),
        scope_(scope),
        calls_(connection_->as_function()),
        front_(options) {}

  Outcome write(const Admission& admission, const std::string& value) override {
    return append(admission.resources, admission, value);
  }

  Outcome write_to(const std::string& resource, const Admission& admission,
                   const std::string& value) override {
    return append({resource}, admission, value);
  }

  Outcome remove(const std::string& resource, std::uint64_t token) override {
    EtcdOrder order{.resources = {resource}, .token = std::to_string(token)};
    order.changes.emplace_back(
        EtcdDelete{etcd_log_key(scope_, resource), !is_one_key(scope_, resource)});
    return outcome_of(calls_.write(order));
  }

  Outcome move(const std::string& from, const std::string& to,
               const Admission& admission) override {
    const bool one = is_one_key(scope_, from);
    const std::string source = etcd_log_key(scope_, from);
    const std::string target = etcd_log_key(scope_, to);
    const auto found = connection_->range(source, one ? "" : etcd::end_of_prefix(source));
    if (!found) return outcome_of(found.error());
    if (found->size() > kMovedMax)
      return {Answer::kBroken, false, "more lines than one transaction of etcd can move"};
    EtcdOrder order = to_order(admission);
    order.changes.emplace_back(EtcdDelete{source, !one});
    std::size_t number = 0;
    for (const Effect& each : etcd_log_effects(*found)) {
      const std::string line = etcd_log_line(each.token, each.value);
      if (one && number > 0) {
        std::get<EtcdPut>(order.changes.back()).value += line;
      } else {
        order.changes.emplace_back(
            EtcdPut{one ? target : fmt::format("{}moved-{:03}", target, number), line});
      }
      ++number;
    }
    // Nothing may have come in between.
    for (const etcd::KeyValue& each : *found)
      order.conditions.push_back({each.key, each.mod_revision});
    return outcome_of(calls_.write(order));
  }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds) override {
    const auto answer = calls_.advance(resource, token);
    if (!answer) return {outcome_of(answer.error()), {}};
    if (answer->end != End::kAdmitted) return {outcome_of(*answer), {}};
    return {{Answer::kDone}, none_if_zero(answer->max)};
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    const auto answer = calls_.check(resource, token);
    if (!answer) return {outcome_of(answer.error()), {}};
    return {outcome_of(*answer), none_if_zero(answer->max)};
  }

  [[nodiscard]] bool connected() const override { return connection_->is_connected(); }

  [[nodiscard]] Guard* front() override { return &front_; }
  Result<Decision> write_held(const Lease& lease, const HeldWrite& write) override {
    auto change = to_change(write.statement());
    if (!change) return change.error();
    const auto done =
        front_.write(lease, write.resource, {*std::move(change)}, {.operation = write.operation});
    if (!done) return done.error();
    return done->decision;
  }

 private:
  static EtcdOrder to_order(const Admission& admission) {
    EtcdOrder order{.token = admission.token, .operation = admission.operation.value_or(0)};
    for (const std::string& resource : admission.resources) {
      if (std::find(order.resources.begin(), order.resources.end(), resource) ==
          order.resources.end())
        order.resources.push_back(resource);
    }
    return order;
  }

  // One line to the log of each.
  Outcome append(const std::vector<std::string>& logs, const Admission& admission,
                 const std::string& value) {
    const std::uint64_t token = parse_token(admission.token.value_or("")).value_or(0);
    const std::string line = etcd_log_line(token, value);
    for (int i = 0; i < kAppendsMax; ++i) {
      EtcdOrder order = to_order(admission);
      std::vector<std::string> seen;
      for (const std::string& log : logs) {
        const std::string key = etcd_log_key(scope_, log);
        if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
        seen.push_back(key);
        if (!is_one_key(scope_, log)) {
          order.changes.emplace_back(EtcdPut{fmt::format("{}{:016x}", key, random_.next()), line});
          continue;
        }
        const auto found = connection_->range(key, "");
        if (!found) return outcome_of(found.error());
        const std::string before = found->empty() ? "" : found->front().value;
        order.changes.emplace_back(EtcdPut{key, before + line});
        order.conditions.push_back({key, found->empty() ? 0 : found->front().mod_revision});
      }
      if (is_etcd_scratch_bare(logs.front())) return write_bare(order);
      const auto answer = calls_.write(order);
      // Another line came in between.
      if (answer && answer->end == End::kUnmet) continue;
      return outcome_of(answer);
    }
    return {Answer::kAgain, false, "other writers were faster each time"};
  }

  Outcome write_bare(const EtcdOrder& order) {
    const auto& put = std::get<EtcdPut>(order.changes.front());
    const auto done = connection_->transact({.success = {etcd::PutRequest{put.key, put.value}}},
                                            EtcdSending::kOnce);
    if (!done) return outcome_of(done.error());
    return {Answer::kDone};
  }

  const std::shared_ptr<EtcdConnection> connection_;
  const EtcdScope scope_;
  EtcdCalls calls_;
  EtcdGuard front_;
  SystemRandom random_;
};

}  // namespace

Result<std::unique_ptr<Session>> open_etcd_session(const std::string& dsn,
                                                   const SessionRequest& request) {
  EtcdScope scope = EtcdScope::kStatic;
  if (!request.scratch_resource.empty()) {
    const auto known = parse_etcd_form(request.form);
    if (!known) return known.error();
    scope = *known;
  }
  const auto options = to_etcd_options(dsn);
  if (!options) return options.error();
  auto connection = connect_etcd(dsn);
  if (!connection) return connection.error();
  return std::unique_ptr<Session>(
      std::make_unique<EtcdSession>(*options, *std::move(connection), scope));
}

}  // namespace pawl::guard

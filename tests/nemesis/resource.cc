#include "nemesis/resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pawl::nemesis {
namespace {

constexpr std::chrono::milliseconds kWait{1'500};

const guard::Kind& kind_of(const std::string& kind_and_where) {
  const guard::Kind* kind = guard::find_kind(kind_and_where.substr(0, kind_and_where.find(':')));
  PAWL_ASSERT(kind != nullptr);
  return *kind;
}

Answer to_answer(const guard::Outcome& outcome) {
  switch (outcome.answer) {
    case guard::Answer::kAdmitted:
    case guard::Answer::kDone:
      return {Outcome::kAdmitted, {}};
    case guard::Answer::kReplayed:
      return {Outcome::kReplayed, {}};
    case guard::Answer::kStale:
      // Let through by a mode that does not refuse: then the row shows it.
      return {outcome.let_through ? Outcome::kAdmitted : Outcome::kStale, outcome.detail};
    case guard::Answer::kUnknown:
      return {Outcome::kUnknown, outcome.detail};
    default:
      return {outcome.let_through ? Outcome::kAdmitted : Outcome::kNothing, outcome.detail};
  }
}

// Behind the token in a line of a log: what a kind without tables has instead of rows.
std::string line_of(const Row& row, std::int64_t at) {
  return fmt::format("{} {} {}", row.op, row.writer, at);
}

// In the words of the kind. Without tables: what Session::write() does with a line.
std::string insertion(const guard::Kind& kind, const Row& row, std::int64_t at) {
  if (kind.name == "redis")
    return fmt::format("RPUSH {{{}}}:log \"{} {}\"", row.resource, row.token, line_of(row, at));
  if (kind.name == "etcd")
    return fmt::format("put {}/log/{}-{}-{} \"{} {}\"", row.resource, row.token, row.op, at,
                       row.token, line_of(row, at));
  return fmt::format("INSERT INTO {} (token, op, writer, at) VALUES ({}, {}, '{}', {})",
                     row.resource, row.token, row.op, row.writer, at);
}

}  // namespace

const char* to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAdmitted:
      return "admitted";
    case Outcome::kReplayed:
      return "replayed";
    case Outcome::kStale:
      return "stale";
    case Outcome::kNothing:
      return "nothing";
    case Outcome::kUnknown:
      return "unknown";
  }
  return "unknown";
}

// The front of whichever session is open now.
class Resource::ReconnectingGuard final : public Guard {
 public:
  explicit ReconnectingGuard(Resource& resource) : resource_(resource) {}

  [[nodiscard]] std::string name() const override { return std::string(resource_.kind_.name); }
  Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                std::chrono::milliseconds wait) override {
    Guard* front = now();
    if (front == nullptr) return Error{Code::kUnavailable, resource_.unreachable().detail};
    return front->advance(resource, token, std::min(wait, kWait));
  }
  Result<Decision> check(std::string_view resource, std::uint64_t token) override {
    Guard* front = now();
    if (front == nullptr) return Error{Code::kUnavailable, resource_.unreachable().detail};
    return front->check(resource, token);
  }

 private:
  Guard* now() {
    guard::Session* session = resource_.session();
    return session == nullptr ? nullptr : session->front();
  }
  Resource& resource_;
};

Resource::Resource(const std::string& kind_and_where, Clock now)
    : kind_(kind_of(kind_and_where)),
      where_(kind_and_where.substr(kind_and_where.find(':') + 1)),
      now_(std::move(now)),
      guard_(std::make_unique<ReconnectingGuard>(*this)) {}

Resource::~Resource() = default;

guard::Session* Resource::session() {
  if (session_ != nullptr && session_->connected()) return session_.get();
  session_.reset();
  auto opened = kind_.open_session(where_, {});
  if (opened) session_ = *std::move(opened);
  return session_.get();
}

Answer Resource::unreachable() const {
  return {Outcome::kNothing, fmt::format("{} cannot be reached", kind_.title)};
}

Guard* Resource::guard() {
  guard::Session* now = session();
  return now == nullptr || now->front() == nullptr ? nullptr : guard_.get();
}

Answer Resource::advance(const std::string& resource, std::uint64_t token) {
  guard::Session* now = session();
  if (now == nullptr) return unreachable();
  const guard::Outcome outcome = now->advance(resource, token, kWait).outcome;
  // The answer may be lost, not the statement.
  if (!now->connected()) return {Outcome::kUnknown, outcome.detail};
  return to_answer(outcome);
}

Answer Resource::check(const std::string& resource, std::uint64_t token) {
  guard::Session* now = session();
  if (now == nullptr) return unreachable();
  return to_answer(now->check(resource, token).outcome);
}

Answer Resource::write(const Row& row, const Lease* lease) {
  guard::Session* now = session();
  if (now == nullptr) return unreachable();
  const bool asks = lease != nullptr && now->front() != nullptr;
  if (!asks && !kind_.abilities.has(guard::Ability::kTransactions))
    return to_answer(
        now->write({{row.resource}, std::to_string(row.token), row.op}, line_of(row, now_())));
  if (!asks) return write_in_steps(*now, row);
  const auto statement = [&] { return insertion(kind_, row, now_()); };
  return to_answer(guard::to_outcome(now->write_held(*lease, {row.resource, row.op, statement})));
}

Answer Resource::write_in_steps(guard::Session& session, const Row& row) {
  guard::Outcome outcome = session.begin(guard::Isolation::kDefault);
  guard::Outcome verdict = outcome;
  if (outcome.passed()) {
    verdict = outcome = session.admit({{row.resource}, std::to_string(row.token), row.op});
    if (outcome.passed()) outcome = session.execute(insertion(kind_, row, now_()));
  }
  const bool replayed = verdict.answer == guard::Answer::kReplayed;
  if (outcome.passed() || replayed) {
    outcome = session.commit();
    if (outcome.passed()) return {replayed ? Outcome::kReplayed : Outcome::kAdmitted, {}};
    if (!session.connected()) return {Outcome::kUnknown, outcome.detail};
  }
  if (session.connected()) static_cast<void>(session.rollback());
  return to_answer(outcome);
}

}  // namespace pawl::nemesis

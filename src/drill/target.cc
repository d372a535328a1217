#include "drill/target.h"

#include <utility>

#include "guard/kinds.h"

namespace pawl::drill {
namespace {

using guard::Admission;
using guard::Answer;
using guard::Isolation;
using guard::Outcome;
using guard::Session;

class SessionWriter : public Writer {
 public:
  SessionWriter(std::unique_ptr<Session> session, Target target, guard::Abilities abilities)
      : session_(std::move(session)), target_(std::move(target)), abilities_(abilities) {}

  Outcome write(std::uint64_t token, const std::string& value) final {
    Outcome outcome;
    for (int i = 0; i < kAttempts; ++i) {
      outcome = write_once({{target_.resource}, std::to_string(token), {}}, token, value);
      if (outcome.answer != Answer::kAgain) break;
    }
    return outcome;
  }

  Outcome advance(std::uint64_t token, std::chrono::milliseconds wait) final {
    if (!target_.guarded) return {Answer::kDone, false, {}};
    return session_->advance(target_.resource, token, wait).outcome;
  }

 protected:
  virtual Outcome write_once(const Admission& admission, std::uint64_t token,
                             const std::string& value) = 0;

  [[nodiscard]] Session& session() { return *session_; }
  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] guard::Abilities abilities() const { return abilities_; }

 private:
  const std::unique_ptr<Session> session_;
  const Target target_;
  const guard::Abilities abilities_;
};

// A resource that the drill has made: a write is a line in its log.
class ScratchWriter final : public SessionWriter {
 public:
  using SessionWriter::SessionWriter;

 private:
  Outcome write_once(const Admission& admission, std::uint64_t, const std::string& value) override {
    return guard::write_whole(session(), abilities(), Isolation::kDefault, admission, value);
  }
};

// The user's own resource: nothing but the user's statement is sent to it, and that is rolled back.
class OwnWriter final : public SessionWriter {
 public:
  using SessionWriter::SessionWriter;

 private:
  Outcome write_once(const Admission& admission, std::uint64_t token, const std::string&) override {
    // Without transactions a write could not be taken back, so it is not sent.
    if (!abilities().has(guard::Ability::kTransactions))
      return session().check(target().resource, token).outcome;
    Outcome outcome = session().begin(Isolation::kDefault);
    if (!outcome.passed()) return outcome;
    const Outcome verdict = outcome = session().admit(admission);
    if (outcome.passed() && !target().statement.empty())
      outcome = execute(session(), target(), token);
    static_cast<void>(session().rollback());
    if (!outcome.passed()) return outcome;
    Outcome judged = verdict;
    judged.rows = outcome.rows;
    return judged;
  }
};

// The statement with the token in place of each `:token`.
std::string with_token(std::string statement, std::optional<std::uint64_t> token) {
  const std::string text = token ? std::to_string(*token) : "NULL";
  for (std::size_t at = 0; (at = statement.find(kTokenMark, at)) != statement.npos;
       at += text.size())
    statement.replace(at, kTokenMark.size(), text);
  return statement;
}

}  // namespace

Outcome execute(Session& session, const Target& target, std::optional<std::uint64_t> token) {
  const Outcome outcome = session.execute(with_token(target.statement, token));
  if (!outcome.passed() || session.in_transaction()) return outcome;
  return {Answer::kBroken, false,
          "the statement has committed what it did, so it could not be rolled back; give one that "
          "does not commit"};
}

Result<TargetSession> open_session(const Target& target) {
  const auto kind = guard::need_kind(target.kind);
  if (!kind) return kind.error();
  guard::SessionRequest request{.watched = target.watched};
  if (target.scratch) {
    request.scratch_resource = target.resource;
    request.form = (*kind)->scratch_form;
  }
  auto session = (*kind)->open_session(target.where, request);
  if (!session) return session.error();
  return TargetSession{*std::move(session), (*kind)->abilities};
}

Result<std::unique_ptr<Writer>> open_writer(const Target& target) {
  auto opened = open_session(target);
  if (!opened) return opened.error();
  if (target.scratch)
    return std::unique_ptr<Writer>(
        std::make_unique<ScratchWriter>(std::move(opened->session), target, opened->abilities));
  return std::unique_ptr<Writer>(
      std::make_unique<OwnWriter>(std::move(opened->session), target, opened->abilities));
}

}  // namespace pawl::drill

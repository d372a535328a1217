#include "drill/target.h"

#include <string_view>
#include <utility>

#include "base/assert.h"
#include "conformance/subjects.h"
#include "conformance/trial.h"

namespace pawl::drill {
namespace {

using conformance::Admission;
using conformance::Answer;
using conformance::Isolation;
using conformance::Outcome;
using conformance::Session;

constexpr int kAttempts =
    20;  // after a deadlock or a serialization failure, which say nothing about the token

// One transaction after the other, under a token.
class SessionWriter : public Writer {
 public:
  SessionWriter(std::unique_ptr<Session> session, Target target)
      : session_(std::move(session)), target_(std::move(target)) {}

  Outcome write(std::uint64_t token, const std::string& value) final {
    Outcome outcome;
    for (int i = 0; i < kAttempts; ++i) {
      outcome = write_once(conformance::write(target_.resource, token), value);
      if (outcome.answer != Answer::kAgain) break;
    }
    return outcome;
  }

  Outcome advance(std::uint64_t token, std::chrono::milliseconds wait) final {
    if (!target_.guarded) return {Answer::kDone};
    return session_->advance(target_.resource, token, wait).outcome;
  }

 protected:
  virtual Outcome write_once(const Admission& admission, const std::string& value) = 0;

  // The last step of a write that went well so far: the verdict, unless it was not confirmed.
  Outcome commit(const Outcome& verdict) {
    const Outcome committed = session_->commit();
    if (committed.passed()) return verdict;
    static_cast<void>(session_->rollback());
    return committed;
  }
  [[nodiscard]] Session& session() { return *session_; }
  [[nodiscard]] const Target& target() const { return target_; }

 private:
  const std::unique_ptr<Session> session_;
  const Target target_;
};

// What the drill has made for itself: a write is a line in its log.
class ScratchWriter final : public SessionWriter {
 public:
  using SessionWriter::SessionWriter;

 private:
  Outcome write_once(const Admission& admission, const std::string& value) override {
    const Outcome verdict =
        conformance::begin_write(session(), Isolation::kDefault, admission, value);
    return verdict.passed() ? commit(verdict) : verdict;
  }
};

// What is the user's own: nothing is done to it but what the user has said, and by default nothing
// at all.
class OwnWriter final : public SessionWriter {
 public:
  using SessionWriter::SessionWriter;

 private:
  Outcome write_once(const Admission& admission, const std::string&) override {
    Outcome outcome = session().begin(Isolation::kDefault);
    if (!outcome.passed()) return outcome;
    const Outcome verdict = outcome = session().admit(admission);
    const std::string& statement = target().statement;
    if (outcome.passed() && !statement.empty()) {
      outcome = session().execute(statement);
      if (outcome.passed()) return commit(verdict);
    }
    static_cast<void>(session().rollback());
    return outcome;
  }
};

void replace_all(std::string& text, std::string_view what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

// A row in a table of ours, under guard or not: a write overwrites what it says.
class RowWriter final : public SessionWriter {
 public:
  using SessionWriter::SessionWriter;

 private:
  Outcome write_once(const Admission& admission, const std::string& value) override {
    Outcome outcome = session().begin(Isolation::kDefault);
    if (!outcome.passed()) return outcome;
    Outcome verdict{Answer::kAdmitted};
    if (target().guarded) verdict = session().admit(admission);
    outcome = verdict.passed() ? session().execute(filled(*admission.token, value)) : verdict;
    if (outcome.passed()) return commit(verdict);
    static_cast<void>(session().rollback());
    return outcome;
  }

  [[nodiscard]] std::string filled(const std::string& token, const std::string& value) const {
    PAWL_ASSERT(value.find_first_of("'\\") == std::string::npos);  // It is ours.
    std::string sql = target().statement;
    replace_all(sql, ":token", token);
    replace_all(sql, ":value", "'" + value + "'");
    return sql;
  }
};

template <class Kind>
Result<std::unique_ptr<Writer>> make_writer(Result<std::unique_ptr<Session>> session,
                                            const Target& target) {
  if (!session) return session.error();
  return std::unique_ptr<Writer>(std::make_unique<Kind>(*std::move(session), target));
}

}  // namespace

Result<std::unique_ptr<Writer>> open_writer(const Target& target) {
  using conformance::Form;
  if (target.scratch && !target.statement.empty()) {
    return make_writer<RowWriter>(
        conformance::open_session(target.kind, target.where, Form::kTable), target);
  }
  if (target.scratch) {
    return make_writer<ScratchWriter>(
        conformance::open_session(target.kind, target.where, kScratchForm, target.resource),
        target);
  }
  const Form form = target.watched ? Form::kTable : Form::kAdmit;
  return make_writer<OwnWriter>(conformance::open_session(target.kind, target.where, form), target);
}

}  // namespace pawl::drill

#include "drill/statement_writer.h"

#include <utility>

#include "conformance/subjects.h"
#include "conformance/trial.h"

namespace pawl::drill {
namespace {

using conformance::Answer;
using conformance::Isolation;
using conformance::Outcome;
using conformance::Session;

constexpr int kAttempts = 20;  // after what says nothing about the token: a deadlock, another writer

void replace_all(std::string& text, std::string_view what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

// Backslashes mean something in MariaDB, and no value of ours has one.
std::string quoted(std::string value) {
  replace_all(value, "'", "''");
  replace_all(value, "\\", "/");
  return "'" + value + "'";
}

class StatementWriter final : public Writer {
 public:
  StatementWriter(std::unique_ptr<Session> session, Target target)
      : session_(std::move(session)), target_(std::move(target)) {}

  Outcome write(std::uint64_t token, const std::string& value) override {
    std::string sql = target_.statement;
    replace_all(sql, ":token", std::to_string(token));
    replace_all(sql, ":value", quoted(value));
    Outcome outcome;
    for (int i = 0; i < kAttempts; ++i) {
      outcome = write_once(token, sql);
      if (outcome.answer != Answer::kAgain) break;
    }
    return outcome;
  }

  Outcome advance(std::uint64_t token, std::chrono::milliseconds wait) override {
    if (!target_.guarded) return {Answer::kDone};
    return session_->advance(target_.resource, token, wait).outcome;
  }

 private:
  Outcome write_once(std::uint64_t token, const std::string& sql) {
    Outcome step = session_->begin(Isolation::kDefault);
    if (!step.passed()) return step;
    Outcome verdict{Answer::kAdmitted};
    if (target_.guarded) verdict = session_->admit(conformance::write(target_.resource, token));
    step = verdict;
    if (step.passed()) step = session_->execute(sql);
    if (step.passed()) step = session_->commit();
    if (step.passed()) return verdict;
    static_cast<void>(session_->rollback());
    return step;
  }

  const std::unique_ptr<Session> session_;
  const Target target_;
};

}  // namespace

Result<std::unique_ptr<Writer>> open_statement_writer(const Target& target) {
  auto session = conformance::open_session(target.kind, target.where, kScratchForm, target.resource);
  if (!session) return session.error();
  return std::unique_ptr<Writer>(std::make_unique<StatementWriter>(*std::move(session), target));
}

}  // namespace pawl::drill

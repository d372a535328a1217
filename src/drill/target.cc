#include "drill/target.h"

#include <utility>

#include "conformance/subjects.h"
#include "conformance/trial.h"
#include "drill/statement_writer.h"

namespace pawl::drill {
namespace {

using conformance::Answer;
using conformance::Isolation;
using conformance::Outcome;
using conformance::Session;

constexpr int kAttempts =
    20;  // after a deadlock or a serialization failure, which say nothing about the token

// What the drill has made for itself: a write is a line in its log.
class ScratchWriter final : public Writer {
 public:
  ScratchWriter(std::unique_ptr<Session> session, Target target)
      : session_(std::move(session)), target_(std::move(target)) {}

  Outcome write(std::uint64_t token, const std::string& value) override {
    Outcome outcome;
    for (int i = 0; i < kAttempts; ++i) {
      outcome = write_once(conformance::write(target_.resource, token), value);
      if (outcome.answer != Answer::kAgain) break;
    }
    return outcome;
  }

  Outcome advance(std::uint64_t token, std::chrono::milliseconds wait) override {
    if (!target_.guarded) return {Answer::kDone};
    return session_->advance(target_.resource, token, wait).outcome;
  }

 private:
  Outcome write_once(const conformance::Admission& admission, const std::string& value) {
    const Outcome verdict = conformance::begin_write(*session_, Isolation::kDefault, admission, value);
    if (!verdict.passed()) return verdict;
    const Outcome committed = session_->commit();
    if (committed.passed()) return verdict;
    static_cast<void>(session_->rollback());
    return committed;
  }

  const std::unique_ptr<Session> session_;
  const Target target_;
};

}  // namespace

Result<std::unique_ptr<Writer>> open_writer(const Target& target) {
  if (target.scratch && !target.statement.empty()) return open_statement_writer(target);
  auto session = conformance::open_session(target.kind, target.where, kScratchForm, target.resource);
  if (!session) return session.error();
  return std::unique_ptr<Writer>(std::make_unique<ScratchWriter>(*std::move(session), target));
}

}  // namespace pawl::drill

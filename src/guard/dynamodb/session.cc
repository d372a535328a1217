// One connection to DynamoDB as a Session.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "guard/dynamodb/dsn.h"
#include "guard/dynamodb/front.h"
#include "guard/dynamodb/kind.h"
#include "guard/dynamodb/scratch_log.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

using End = DynamoVerdict::End;

constexpr int kAgainMax = 20;

Outcome outcome_of(const DynamoVerdict& answer) {
  static constexpr std::array kAnswers{Answer::kAdmitted,  Answer::kReplayed, Answer::kStale,
                                       Answer::kMissing,   Answer::kAhead,    Answer::kMalformed,
                                       Answer::kUnguarded, Answer::kAgain};
  return {kAnswers.at(static_cast<std::size_t>(answer.end)), answer.let_through, answer.text};
}

Outcome outcome_of(const Error& error) {
  if (error.code == Code::kUnknown) return {Answer::kUnknown, false, error.detail};
  return {error.code == Code::kUnavailable ? Answer::kAgain : Answer::kBroken, false, error.detail};
}

std::optional<std::uint64_t> none_if_zero(std::uint64_t fence) {
  return fence == 0 ? std::optional<std::uint64_t>{} : fence;
}

// What `aws dynamodb put-item` takes: {"TableName": …, "Item": …}, or with Key and UpdateExpression
// for update-item.
Result<DynamoChange> to_change(const std::string& statement) {
  boost::system::error_code failed;
  const auto parsed = boost::json::parse(statement, failed);
  const Error wrong{Code::kInvalid,
                    "a change is the JSON of a PutItem: {\"TableName\": \"orders\", \"Item\": "
                    "{\"id\": {\"S\": \"7\"}}}"};
  if (failed || !parsed.is_object()) return wrong;
  const auto& body = parsed.get_object();
  const auto* table = body.if_contains("TableName");
  const auto item = object_in(body, "Item");
  if (table == nullptr || !table->is_string() || !item) return wrong;
  DynamoPut put{std::string(table->get_string())};
  for (const auto& field : *item)
    put.item.emplace(field.key(), DynamoValue::json(boost::json::serialize(field.value())));
  return DynamoChange(std::move(put));
}

class DynamoSession final : public Session {
 public:
  explicit DynamoSession(const DynamoOptions& options)
      : front_(open_dynamo_store(options), options), guard_(options) {}

  Result<void> verify() { return front_.ready(); }

  Outcome write(const Admission& admission, const std::string& value) override {
    return append(admission.resources, admission, value);
  }

  Outcome write_to(const std::string& resource, const Admission& admission,
                   const std::string& value) override {
    return append({resource}, admission, value);
  }

  Outcome remove(const std::string& resource, std::uint64_t token) override {
    DynamoOrder order{.resources = {resource}, .token = std::to_string(token)};
    order.ops.push_back({.kind = DynamoOp::Kind::kDelete,
                         .table = dynamo_scratch_table(resource),
                         .fields = dynamo_log_key(resource)});
    return send(order);
  }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds) override {
    const auto answer = front_.calls().advance(resource, token);
    if (!answer) return {outcome_of(answer.error()), {}};
    if (answer->end != End::kAdmitted) return {outcome_of(*answer), {}};
    return {{Answer::kDone}, none_if_zero(answer->max)};
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    const auto answer = front_.calls().check(resource, token);
    if (!answer) return {outcome_of(answer.error()), {}};
    return {outcome_of(*answer), none_if_zero(answer->max)};
  }

  [[nodiscard]] Guard* front() override { return &guard_; }
  Result<Decision> write_held(const Lease& lease, const HeldWrite& write) override {
    auto change = to_change(write.statement());
    if (!change) return change.error();
    const auto done =
        guard_.write(lease, write.resource, *std::move(change), {.operation = write.operation});
    if (!done) return done.error();
    return done->decision;
  }

 private:
  // One line to the log of each.
  Outcome append(const std::vector<std::string>& logs, const Admission& admission,
                 const std::string& value) {
    const std::uint64_t token = parse_token(admission.token.value_or("")).value_or(0);
    if (logs.front().find(kDynamoBare) != std::string::npos)
      return write_bare(dynamo_log_op(logs.front(), token, value));
    DynamoOrder order{.token = admission.token, .operation = admission.operation.value_or(0)};
    if (admission.operation && order.operation == 0)
      return {Answer::kMalformed, false, "an operation number is at least 1"};
    for (const std::string& resource : admission.resources) {
      if (std::find(order.resources.begin(), order.resources.end(), resource) ==
          order.resources.end())
        order.resources.push_back(resource);
    }
    std::vector<std::string> seen;
    for (const std::string& log : logs) {
      if (std::find(seen.begin(), seen.end(), log) != seen.end()) continue;
      seen.push_back(log);
      order.ops.push_back(dynamo_log_op(log, token, value));
    }
    return send(order);
  }

  // A transaction that met another has not happened.
  Outcome send(DynamoOrder& order) {
    Outcome outcome;
    for (int tries = 0; tries < kAgainMax; ++tries) {
      order.nonce = front_.calls().new_nonce();
      const auto answer = front_.calls().write(order);
      outcome = answer ? outcome_of(*answer) : outcome_of(answer.error());
      if (outcome.answer != Answer::kAgain) break;
    }
    return outcome;
  }

  Outcome write_bare(const DynamoOp& op) {
    const auto done = call_or_fail(front_.store(), operation_of(op.kind), to_body(op));
    return done ? Outcome{Answer::kDone} : outcome_of(done.error());
  }

  DynamoFront front_;
  DynamoGuard guard_;
};

}  // namespace

Result<std::unique_ptr<Session>> open_dynamo_session(const std::string& dsn,
                                                     const SessionRequest& request) {
  if (!request.scratch_resource.empty()) {
    if (const auto known = parse_dynamo_form(request.form); !known) return known.error();
  }
  const auto options = parse_dynamo_dsn(dsn);
  if (!options) return options.error();
  auto session = std::make_unique<DynamoSession>(*options);
  if (const auto ready = session->verify(); !ready) return ready.error();
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace pawl::guard

// One connection to Redis as a Session.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "guard/redis/calls.h"
#include "guard/redis/kind.h"
#include "guard/redis/writer.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

Outcome refusal(const RedisFailure& failure) {
  struct Known {
    std::string_view word;
    Answer answer;
  };
  static constexpr std::array kKnown{
      Known{"PAWLSTALE", Answer::kStale},         Known{"PAWLMISSING", Answer::kMissing},
      Known{"PAWLAHEAD", Answer::kAhead},         Known{"PAWLMALFORMED", Answer::kMalformed},
      Known{"PAWLUNGUARDED", Answer::kUnguarded},
  };
  for (const Known& known : kKnown) {
    if (failure.word() == known.word) return {known.answer, false, failure.text};
  }
  const Error error = to_error(failure);
  if (error.code == Code::kUnknown) return {Answer::kUnknown, false, error.detail};
  return {error.code == Code::kUnavailable ? Answer::kAgain : Answer::kBroken, false, error.detail};
}

Outcome refusal(const Error& error) {
  return refusal(RedisFailure{error.detail, error.code == Code::kUnknown});
}

// The words of a command as redis-cli takes them: "double quotes" keep spaces together.
RedisWords split_words(std::string_view line) {
  RedisWords words;
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

class RedisSession final : public Session {
 public:
  RedisSession(std::shared_ptr<RedisClient> client, RedisForm form)
      : client_(std::move(client)),
        form_(form),
        calls_(
            [client = client_](const RedisWords& words) { return client->command(words); },
            form == RedisForm::kScript ? std::optional(RedisCalls::Form::kScript) : std::nullopt),
        front_(client_->connection(), [dsn = client_->dsn()](redisContext* connection) {
          return log_in(connection, dsn).has_value();
        }) {}

  Result<void> find_form() {
    const auto found = calls_.installed();
    if (!found) return found.error();
    return {};
  }

  Outcome write(const Admission& admission, const std::string& value) override {
    if (admission.resources.size() > 1) return write_several(admission, value);
    return write_to(admission.resources.front(), admission, value);
  }

  Outcome write_to(const std::string& resource, const Admission& admission,
                   const std::string& value) override {
    const RedisWords append = append_to(resource, admission, value);
    if (is_scratch_bare(resource)) {
      const RedisAnswer done = client_->command(append);
      return done ? Outcome{Answer::kDone} : refusal(*done.failure);
    }
    return guarded(admission, append);
  }

  Outcome remove(const std::string& resource, std::uint64_t token) override {
    return guarded({{resource}, std::to_string(token), {}}, {"DEL", scratch_key(form_, resource)});
  }

  Outcome move(const std::string& from, const std::string& to,
               const Admission& admission) override {
    return guarded(admission, {"RENAME", scratch_key(form_, from), scratch_key(form_, to)});
  }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds) override {
    const auto before = calls_.advance(resource, token);
    if (!before) return {refusal(before.error()), {}};
    return {{Answer::kDone}, none_for_zero(*before)};
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    const auto decision = calls_.check(resource, token);
    if (!decision) return {refusal(decision.error()), {}};
    return {to_outcome(decision), none_for_zero(decision->max)};
  }

  [[nodiscard]] bool connected() const override { return client_->connection()->err == 0; }

  [[nodiscard]] Guard* front() override { return &front_; }
  Result<Decision> write_held(const Lease& lease, const HeldWrite& write) override {
    const auto done = front_.write(lease, write.resource, split_words(write.statement()),
                                   {.operation = write.operation});
    if (!done) return done.error();
    return done->decision;
  }

 private:
  static std::optional<std::uint64_t> none_for_zero(std::uint64_t fence) {
    return fence == 0 ? std::optional<std::uint64_t>{} : fence;
  }

  [[nodiscard]] RedisWords append_to(const std::string& resource, const Admission& admission,
                                     const std::string& value) const {
    const std::uint64_t token = parse_token(admission.token.value_or("")).value_or(0);
    return {"RPUSH", scratch_key(form_, resource), fmt::format("{} {}", token, value)};
  }

  static RedisWords arguments_of(const Admission& admission) {
    const std::string token = admission.token.value_or("none");
    if (admission.resources.size() == 1)
      return {admission.resources.front(), token,
              admission.operation ? std::to_string(*admission.operation) : ""};
    RedisWords words{std::to_string(admission.resources.size())};
    words.insert(words.end(), admission.resources.begin(), admission.resources.end());
    words.push_back(token);
    return words;
  }

  RedisAnswer call(const Admission& admission, const RedisWords& command) {
    RedisWords arguments = arguments_of(admission);
    arguments.insert(arguments.end(), command.begin(), command.end());
    const bool one = admission.resources.size() == 1;
    return calls_.call(one ? "pawl_write" : "pawl_write_all", admission.resources.front(),
                       std::move(arguments));
  }

  Outcome guarded(const Admission& admission, const RedisWords& command) {
    const RedisAnswer answer = call(admission, command);
    if (!answer) return refusal(*answer.failure);
    return to_outcome(to_decision(answer, 0));
  }

  // A call for each log, every one of them for all resources. Between MULTI and EXEC nobody else is
  // served, so that either all are admitted or none.
  Outcome write_several(const Admission& admission, const std::string& value) {
    if (const auto begun = client_->command({"MULTI"}); !begun) return refusal(*begun.failure);
    for (const std::string& resource : admission.resources) {
      const RedisAnswer queued = call(admission, append_to(resource, admission, value));
      if (queued) continue;
      static_cast<void>(client_->command({"DISCARD"}));
      return refusal(*queued.failure);
    }
    const RedisAnswer done = client_->command({"EXEC"});
    if (!done) return refusal(*done.failure);
    const RedisReply& first = done.reply.items.front();
    if (first.type != RedisReply::Type::kArray) return refusal(RedisFailure{first.text, false});
    return to_outcome(to_decision({.reply = first}, 0));
  }

  const std::shared_ptr<RedisClient> client_;
  const RedisForm form_;
  RedisCalls calls_;
  RedisGuard front_;
};

}  // namespace

Result<std::unique_ptr<Session>> open_redis_session(const std::string& dsn,
                                                    const SessionRequest& request) {
  const auto where = parse_redis_dsn(dsn);
  if (!where) return where.error();
  RedisForm form = where->script ? RedisForm::kScript : RedisForm::kStatic;
  if (!request.scratch_resource.empty()) {
    const auto known = parse_redis_form(request.form);
    if (!known) return known.error();
    form = *known;
  }
  auto client = RedisClient::open(*where);
  if (!client) return client.error();
  auto session = std::make_unique<RedisSession>(*std::move(client), form);
  if (const auto ready = session->find_form(); !ready) return ready.error();
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace pawl::guard

#include "conformance/process_subject.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "conformance/json_lines.h"

namespace pawl::conformance {
namespace {

namespace json = boost::json;

Error not_understood(std::string_view what, const json::object& answer) {
  return {Code::kInvalid, fmt::format("no {} in {}", what, json::serialize(answer))};
}

json::object policy_of(const Policy& policy) {
  return {{"mode", to_text(policy.mode)},
          {"percent", policy.percent},
          {"require_token", policy.require_token},
          {"equal", to_text(policy.equal)},
          {"max_step", policy.max_step}};
}

json::value token_of(const std::optional<std::string>& token) {
  return token ? json::value(*token) : json::value(nullptr);
}

std::optional<std::uint64_t> number(const json::value& value) {
  boost::system::error_code error;
  const auto found = value.to_number<std::uint64_t>(error);
  if (error) return std::nullopt;
  return found;
}

// A number, or nothing for null and for a key that is not there.
std::optional<std::uint64_t> number(const json::object& answer, const char* key) {
  const json::value* found = answer.if_contains(key);
  return found == nullptr ? std::nullopt : number(*found);
}

std::string text(const json::object& answer, const char* key) {
  const json::value* found = answer.if_contains(key);
  return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

bool flag(const json::object& answer, const char* key) {
  const json::value* found = answer.if_contains(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

// Asks, and makes an error of {"error": "…"}.
Result<json::object> ask(JsonLines& guard, const json::object& request) {
  auto answer = guard.ask(request);
  if (!answer) return answer;
  if (answer->contains("error")) return Error{Code::kInvalid, text(*answer, "error")};
  return answer;
}

Outcome outcome_of(const Result<json::object>& answer) {
  if (!answer) return {Answer::kBroken, false, answer.error().detail};
  const auto word = parse_answer(text(*answer, "answer"));
  if (!word) return {Answer::kBroken, false, not_understood("answer", *answer).detail};
  return {*word, flag(*answer, "let_through"), text(*answer, "detail")};
}

Result<std::vector<std::string>> resources_in(const Result<json::object>& answer) {
  if (!answer) return answer.error();
  const json::value* list = answer->if_contains("resources");
  if (list == nullptr || !list->is_array()) return not_understood("resources", *answer);
  std::vector<std::string> resources;
  for (const json::value& each : list->as_array()) {
    if (!each.is_string()) return not_understood("resources", *answer);
    resources.emplace_back(each.as_string());
  }
  return resources;
}

class ProcessSession final : public Session {
 public:
  ProcessSession(std::shared_ptr<JsonLines> guard, std::string name)
      : guard_(std::move(guard)), name_(std::move(name)) {}
  ~ProcessSession() override { static_cast<void>(step("close")); }

  Outcome begin(Isolation isolation) override {
    return step("begin", {{"isolation", to_text(isolation)}});
  }
  Outcome admit(const Admission& admission) override { return step("admit", fields(admission)); }
  Outcome apply(const std::string& resource, const std::string& value) override {
    return step("apply", {{"resource", resource}, {"value", value}});
  }
  Outcome begin_prepared(Isolation isolation, const std::string& name) override {
    return step("begin", {{"isolation", to_text(isolation)}, {"name", name}});
  }
  Outcome prepare(const std::string& name) override { return step("prepare", {{"name", name}}); }
  Outcome commit_prepared(const std::string& name) override {
    return step("commit_prepared", {{"name", name}});
  }
  Outcome roll_back_prepared(const std::string& name) override {
    return step("rollback_prepared", {{"name", name}});
  }
  Outcome commit() override { return step("commit"); }
  Outcome rollback() override { return step("rollback"); }
  Outcome write(const Admission& admission, const std::string& value) override {
    json::object request = fields(admission);
    request["value"] = value;
    return step("write", request);
  }
  Outcome write_to(const std::string& resource, const Admission& admission,
                   const std::string& value) override {
    json::object request = fields(admission);
    request["value"] = value;
    request["to"] = resource;
    return step("write", request);
  }
  Outcome move(const std::string& from, const std::string& to,
               const Admission& admission) override {
    json::object request = fields(admission);
    request["from"] = from;
    request["to"] = to;
    return step("move", request);
  }
  void lose_commit() override { static_cast<void>(step("lose_commit")); }
  void vanish() override { static_cast<void>(step("vanish")); }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds wait) override {
    const auto answer =
        call("advance", {{"resource", resource}, {"token", token}, {"wait_ms", wait.count()}});
    return {outcome_of(answer), answer ? number(*answer, "before") : std::nullopt};
  }
  Checked check(const std::string& resource, std::uint64_t token) override {
    const auto answer = call("check", {{"resource", resource}, {"token", token}});
    return {outcome_of(answer), answer ? number(*answer, "max") : std::nullopt};
  }
  Outcome remove(const std::string& resource, std::uint64_t token) override {
    return step("remove", {{"resource", resource}, {"token", token}});
  }

 private:
  static json::object fields(const Admission& admission) {
    json::object request{
        {"resources", json::array(admission.resources.begin(), admission.resources.end())},
        {"token", token_of(admission.token)}};
    if (admission.operation) request["operation"] = *admission.operation;
    if (admission.carried) request["carried"] = true;
    return request;
  }
  Result<json::object> call(const char* verb, const json::object& fields) {
    json::object request{{"do", verb}, {"session", name_}};
    request.insert(fields.begin(), fields.end());
    return ask(*guard_, request);
  }
  Outcome step(const char* verb, const json::object& fields = {}) {
    return outcome_of(call(verb, fields));
  }

  const std::shared_ptr<JsonLines> guard_;
  const std::string name_;
};

class ProcessSubject final : public Subject {
 public:
  // `lacks`: what hello says about abilities that the guard does not have.
  ProcessSubject(std::shared_ptr<JsonLines> guard, std::string name, Abilities abilities,
                 json::object lacks)
      : guard_(std::move(guard)),
        name_(std::move(name)),
        abilities_(abilities),
        lacks_(std::move(lacks)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Abilities abilities() const override { return abilities_; }
  [[nodiscard]] std::string why_not(Ability ability) const override {
    return text(lacks_, std::string(to_text(ability)).c_str());
  }

  Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) override {
    return resources_in(
        ask(*guard_, {{"do", "fresh"}, {"count", count}, {"policy", policy_of(policy)}}));
  }
  Result<std::vector<std::string>> fresh_spellings(const Policy& policy) override {
    return resources_in(ask(*guard_, {{"do", "spellings"}, {"policy", policy_of(policy)}}));
  }

  Result<std::unique_ptr<Session>> open() override {
    const std::string session = fmt::format("s{}", ++sessions_);
    const auto answer = ask(*guard_, {{"do", "open"}, {"session", session}});
    if (!answer) return answer.error();
    return std::unique_ptr<Session>(std::make_unique<ProcessSession>(guard_, session));
  }

  Result<void> set_policy(const std::string& resource, const Policy& policy) override {
    return done({{"do", "policy"}, {"resource", resource}, {"policy", policy_of(policy)}});
  }
  Result<void> rehearse_policy(const std::string& resource, const Policy& policy) override {
    return done({{"do", "policy"},
                 {"resource", resource},
                 {"policy", policy_of(policy)},
                 {"rehearse", true}});
  }
  Result<void> rehearse_compact(const std::string& resource, std::uint64_t below) override {
    return done({{"do", "compact"}, {"resource", resource}, {"below", below}, {"rehearse", true}});
  }
  Result<void> make_unreachable(const std::string& resource) override {
    return done({{"do", "unreachable"}, {"resource", resource}});
  }
  Result<std::optional<std::string>> enclose(const std::string& resource) override {
    const auto answer = ask(*guard_, {{"do", "enclose"}, {"resource", resource}});
    if (!answer) return answer.error();
    const json::value* larger = answer->if_contains("resource");
    if (larger == nullptr || (!larger->is_string() && !larger->is_null()))
      return not_understood("resource", *answer);
    if (larger->is_null()) return std::optional<std::string>{};
    return std::optional<std::string>(larger->as_string());
  }
  Result<void> emergency(const std::string& resource) override {
    return done({{"do", "emergency"}, {"resource", resource}});
  }
  Result<void> compact(const std::string& resource, std::uint64_t below) override {
    return done({{"do", "compact"}, {"resource", resource}, {"below", below}});
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    const auto answer = ask(*guard_, {{"do", "fence"}, {"resource", resource}});
    if (!answer) return answer.error();
    if (!answer->contains("fence")) return not_understood("fence", *answer);
    return number(*answer, "fence");
  }

  Result<std::vector<Effect>> effects(const std::string& resource) override {
    const auto answer = ask(*guard_, {{"do", "effects"}, {"resource", resource}});
    if (!answer) return answer.error();
    const json::value* list = answer->if_contains("effects");
    if (list == nullptr || !list->is_array()) return not_understood("effects", *answer);
    std::vector<Effect> effects;
    for (const json::value& each : list->as_array()) {
      if (!each.is_object()) return not_understood("effects", *answer);
      effects.push_back(
          {number(each.as_object(), "token").value_or(0), text(each.as_object(), "value")});
    }
    return effects;
  }

  Result<Counts> counts(const std::string& resource) override {
    const auto answer = ask(*guard_, {{"do", "counts"}, {"resource", resource}});
    if (!answer) return answer.error();
    const auto count = [&](const char* key) { return number(*answer, key).value_or(0); };
    return Counts{count("replayed"), count("stale"), count("missing"), count("ahead"),
                  count("would_refuse")};
  }

 private:
  Result<void> done(const json::object& request) {
    const Outcome outcome = outcome_of(ask(*guard_, request));
    if (outcome.answer == Answer::kDone) return {};
    return Error{Code::kInvalid,
                 fmt::format("answered \"{}\" {}", to_text(outcome.answer), outcome.detail)};
  }

  const std::shared_ptr<JsonLines> guard_;  // Sessions may outlive us in a thread that is ending.
  const std::string name_;
  const Abilities abilities_;
  const json::object lacks_;
  std::atomic<int> sessions_{0};
};

Result<Abilities> abilities_in(const json::object& answer) {
  const json::value* list = answer.if_contains("abilities");
  if (list == nullptr || !list->is_array()) return not_understood("abilities", answer);
  Abilities abilities;
  for (const json::value& each : list->as_array()) {
    const auto known =
        each.is_string() ? parse_ability(std::string_view(each.as_string())) : std::nullopt;
    if (!known)
      return Error{Code::kInvalid, fmt::format("there is no ability {}", json::serialize(each))};
    abilities.add(*known);
  }
  return abilities;
}

}  // namespace

Result<std::unique_ptr<Subject>> start_process_subject(const std::string& command) {
  auto started = JsonLines::start(command);
  if (!started) return started.error();
  const std::shared_ptr<JsonLines> guard = *std::move(started);
  const auto hello = ask(*guard, {{"do", "hello"}, {"protocol", kProcessProtocol}});
  if (!hello) return hello.error();
  const auto abilities = abilities_in(*hello);
  if (!abilities) return abilities.error();
  const std::string name = text(*hello, "name");
  const json::value* lacks = hello->if_contains("lacks");
  return std::unique_ptr<Subject>(std::make_unique<ProcessSubject>(
      guard, name.empty() ? command : name, *abilities,
      lacks != nullptr && lacks->is_object() ? lacks->as_object() : json::object{}));
}

}  // namespace pawl::conformance

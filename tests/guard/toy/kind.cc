#include "toy/kind.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>

#include "base/random.h"
#include "guard_contract/parse.h"
#include "toy/toy_guard.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

constexpr Abilities kToyAbilities{Ability::kConcurrency, Ability::kTextTokens, Ability::kUnguarded};
constexpr std::array<std::string_view, 1> kToyForms{"file"};

Result<void> add_resource(JsonFile& file, const std::string& resource, bool guarded) {
  return change_document(file, [&](json::object& document) -> Result<void> {
    document.at("resources")
        .as_object()
        .insert_or_assign(resource,
                          json::object{{"guarded", guarded}, {"fence", 0}, {"log", json::array{}}});
    return {};
  });
}

Result<void> remove_resource(JsonFile& file, const std::string& resource) {
  return change_document(file, [&](json::object& document) -> Result<void> {
    document.at("resources").as_object().erase(resource);
    return {};
  });
}

class ToyAdministration final : public Administration {
 public:
  explicit ToyAdministration(const std::string& path) : guard_(path) {}

  [[nodiscard]] std::string_view title() const override { return "a JSON file"; }
  [[nodiscard]] bool can(Task task) const override { return task == Task::kProtect; }

  Result<std::optional<Installation>> installed() override {
    if (!std::filesystem::exists(guard_.file().path())) return std::optional<Installation>{};
    const auto document = guard_.file().read();
    if (!document) return document.error();
    return std::optional<Installation>{{"toy", document->at("contract").to_number<int>()}};
  }
  Result<Installation> install(Rehearse rehearse) override {
    if (rehearse == Rehearse::kYes) return unable(Task::kRehearse);
    const auto there = installed();
    if (!there) return there.error();
    if (!*there) {
      if (const auto made = guard_.file().create(); !made) return made.error();
    }
    return Installation{"toy", kGuardContract};
  }
  Result<void> uninstall(Rehearse rehearse) override {
    if (rehearse == Rehearse::kYes) return unable(Task::kRehearse);
    std::filesystem::remove(guard_.file().path());
    return {};
  }

  Result<std::string> protect(const Protection& protection, Rehearse) override {
    const std::string& name = protection.guard.empty() ? protection.table : protection.guard;
    if (const auto made = add_resource(guard_.file(), name, true); !made) return made.error();
    return name;
  }
  Result<void> unprotect(const std::string& table, Rehearse) override {
    return remove_resource(guard_.file(), table);
  }

  Result<std::vector<Problem>> problems() override { return std::vector<Problem>{}; }

  Result<std::vector<Status>> status(const std::string& guard) override {
    auto document = guard_.file().read();
    if (!document) return document.error();
    std::vector<Status> list;
    for (const auto& [name, resource] : document->at("resources").as_object()) {
      if (!guard.empty() && name != guard) continue;
      Status status;
      status.guard = name;
      status.kind = "static";
      status.strength = guard_.strength();
      status.mode = "enforce";
      status.equal = "accept";
      if (const std::uint64_t fence = fence_of(resource.as_object()); fence != 0)
        status.fence = fence;
      status.ready = true;
      list.push_back(std::move(status));
    }
    if (list.empty() && !guard.empty())
      return Error{Code::kInvalid, fmt::format("there is no guard \"{}\" here", guard)};
    return list;
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    const auto checked = guard_.check(resource, 1);
    if (!checked) return checked.error();
    return checked->max == 0 ? std::optional<std::uint64_t>{} : checked->max;
  }
  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds wait, Stragglers stragglers) override {
    if (stragglers == Stragglers::kEvict) return unable(Task::kEvict);
    return guard_.advance(resource, token, wait);
  }

 private:
  ToyGuard guard_;
};

class ToySession final : public Session {
 public:
  explicit ToySession(const std::string& path) : guard_(path) {}

  Outcome write(const Admission& admission, const std::string& value) override {
    const std::string& resource = admission.resources.front();
    const auto token = parse_token(admission.token.value_or(""));
    if (is_bare(resource)) {
      const auto done = guard_.write_unguarded(token.value_or(0), resource, value);
      return done ? Outcome{Answer::kDone, false, {}} : outcome_of(done.error());
    }
    if (!admission.token) return {Answer::kMissing, false, "a token is needed"};
    if (!token) return {Answer::kMalformed, false, "not a token: " + *admission.token};
    const auto written = guard_.write({.token = *token}, resource, value);
    return written ? to_outcome(written) : outcome_of(written.error());
  }

  Advanced advance(const std::string& resource, std::uint64_t token,
                   std::chrono::milliseconds wait) override {
    const auto before = guard_.advance(resource, token, wait);
    if (!before) return {outcome_of(before.error()), {}};
    return {{Answer::kDone, false, {}},
            *before == 0 ? std::optional<std::uint64_t>{} : std::optional(*before)};
  }

  Checked check(const std::string& resource, std::uint64_t token) override {
    const auto decision = guard_.check(resource, token);
    if (!decision) return {outcome_of(decision.error()), {}};
    return {to_outcome(decision),
            decision->max == 0 ? std::optional<std::uint64_t>{} : std::optional(decision->max)};
  }

  [[nodiscard]] Guard* front() override { return &guard_; }

 private:
  static Outcome outcome_of(const Error& error) {
    if (error.detail.starts_with("unknown resource"))
      return {Answer::kUnguarded, false, error.detail};
    return to_outcome(error);
  }

  bool is_bare(const std::string& resource) {
    auto document = guard_.file().read();
    const json::object* found = document ? find_resource(*document, resource) : nullptr;
    return found != nullptr && !found->at("guarded").as_bool();
  }

  ToyGuard guard_;
};

class ToyScratch final : public ScratchSpace {
 public:
  explicit ToyScratch(const std::string& path) : file_(path) {
    SystemRandom random;
    prefix_ = fmt::format("scratch_{:08x}", random.next() & 0xffff'ffff);
  }
  ~ToyScratch() override { retire(made_); }

  [[nodiscard]] std::string name() const override { return "toy file"; }
  [[nodiscard]] Abilities abilities() const override { return kToyAbilities; }

  Result<std::vector<std::string>> fresh(const Policy& policy, std::size_t count) override {
    if (policy.mode != GuardMode::kEnforce) return unable("has no mode but enforce");
    std::vector<std::string> resources;
    while (resources.size() < count) {
      auto made = make(true);
      if (!made) return made.error();
      resources.push_back(*std::move(made));
    }
    return resources;
  }
  Result<std::string> bare() override { return make(false); }
  Result<std::unique_ptr<Session>> open() override {
    return std::unique_ptr<Session>(std::make_unique<ToySession>(file_.path()));
  }
  void retire(const std::vector<std::string>& resources) override {
    for (const std::string& resource : std::vector<std::string>(resources)) {
      static_cast<void>(remove_resource(file_, resource));
      std::erase(made_, resource);
    }
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    auto document = file_.read();
    if (!document) return document.error();
    const json::object* found = find_resource(*document, resource);
    if (found == nullptr || fence_of(*found) == 0) return std::optional<std::uint64_t>{};
    return std::optional<std::uint64_t>{fence_of(*found)};
  }
  Result<std::vector<Effect>> effects(const std::string& resource) override {
    auto document = file_.read();
    if (!document) return document.error();
    std::vector<Effect> effects;
    const json::object* found = find_resource(*document, resource);
    if (found == nullptr) return effects;
    for (const json::value& line : found->at("log").as_array()) {
      const json::array& parts = line.as_array();
      effects.push_back(
          {parts.at(0).to_number<std::uint64_t>(), std::string(parts.at(1).as_string())});
    }
    return effects;
  }

 private:
  Result<std::string> make(bool guarded) {
    std::string resource = fmt::format("{}_{}", prefix_, ++count_);
    if (const auto made = add_resource(file_, resource, guarded); !made) return made.error();
    made_.push_back(resource);
    return resource;
  }

  JsonFile file_;
  std::string prefix_;
  std::uint64_t count_ = 0;
  std::vector<std::string> made_;
};

}  // namespace

const Kind kToyKind{
    .name = "toy",
    .title = "a JSON file",
    .location = Location::kFile,
    .where_example = "toy.json",
    .abilities = kToyAbilities,
    .forms = kToyForms,
    .scratch_form = "file",
    .open_administration = [](const std::string& path) -> Result<std::unique_ptr<Administration>> {
      return std::unique_ptr<Administration>(std::make_unique<ToyAdministration>(path));
    },
    .open_session = [](const std::string& path,
                       const SessionRequest&) -> Result<std::unique_ptr<Session>> {
      return std::unique_ptr<Session>(std::make_unique<ToySession>(path));
    },
    .open_scratch = [](const std::string& path,
                       std::string_view) -> Result<std::unique_ptr<ScratchSpace>> {
      return std::unique_ptr<ScratchSpace>(std::make_unique<ToyScratch>(path));
    },
    .create = [](const std::string& path) { return JsonFile(path).create(); },
};

}  // namespace pawl::guard

#include "sim/guard_model.h"

#include <fmt/format.h>

#include "base/mutants.h"

namespace pawl::sim {
namespace {

using Kind = Effect::Kind;

constexpr std::uint64_t kMaxStep = std::uint64_t{1} << 44;

// Where one number is all that can be kept.
bool keeps_one_number(const std::string& resource) {
  return (resource.back() & 1) != 0;
}

void raise(Token& fence, std::set<std::uint64_t>& done, std::uint64_t& last, Token token) {
  if (token <= fence) return;
  fence = token;
  done.clear();
  last = 0;
}

constexpr const char* kVerdicts[] = {"admitted", "replayed", "stale", "stale (op)", "ahead"};
constexpr const char* kKinds[] = {"advance", "read", "check", "write", "delete"};

}  // namespace

Nanos GuardModel::delay() {
  const bool slow = lossy_ && world_.chance(4);
  return world_.between(std::chrono::microseconds(50), slow ? Millis(2500) : Millis(2));
}

void GuardModel::send(const GuardCall& call, Answer answer) {
  const int copies = lossy_ && world_.chance(3) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (lossy_ && world_.chance(2)) continue;
    world_.after(delay(), [this, call, answer] { arrive(call, answer); });
  }
}

void GuardModel::restart() {
  world_.note("the guarded resource starts again");
  for (auto& [name, resource] : resources_) {
    if (PAWL_MUTANT(fence_in_memory)) resource.fence = Token{};
  }
}

void GuardModel::arrive(const GuardCall& call, const Answer& answer) {
  Resource& resource = resources_[call.resource];
  Effect effect;
  effect.resource = call.resource;
  effect.kind = call.kind;
  effect.token = call.token;
  effect.op = call.op;
  effect.at = world_.now();
  effect.verdict = judge(resource, call);
  const bool changes = call.kind == Kind::kWrite || call.kind == Kind::kDelete;
  if (changes && effect.verdict == Effect::Verdict::kAdmitted) {
    if (PAWL_MUTANT(check_then_write)) {
      world_.after(delay(), [this, call, effect]() mutable {
        effect.at = world_.now();
        change(resources_[call.resource], call, effect);
        record(effect);
      });
      return world_.after(delay(), [answer, effect] { answer(effect.verdict); });
    }
    change(resource, call, effect);
  }
  record(effect);
  if (lossy_ && world_.chance(2)) return;
  world_.after(delay(), [answer, effect] { answer(effect.verdict); });
}

Effect::Verdict GuardModel::judge(Resource& resource, const GuardCall& call) {
  if (call.token.value > resource.fence.value + kMaxStep) {
    if (PAWL_MUTANT(refused_token_moves_fence)) resource.fence = call.token;
    return Effect::Verdict::kAhead;
  }
  if (call.token < resource.fence) return Effect::Verdict::kStale;
  switch (call.kind) {
    case Kind::kRead:
      return Effect::Verdict::kAdmitted;
    case Kind::kCheck:
      if (PAWL_MUTANT(reader_raises_fence))
        raise(resource.fence, resource.done, resource.last, call.token);
      return Effect::Verdict::kAdmitted;
    case Kind::kAdvance:
      raise(resource.fence, resource.done, resource.last, call.token);
      return Effect::Verdict::kAdmitted;
    case Kind::kWrite:
    case Kind::kDelete:
      break;
  }
  return admit(resource, call);
}

Effect::Verdict GuardModel::admit(Resource& resource, const GuardCall& call) {
  const bool strict = PAWL_MUTANT(strict_token) && resource.last != 0;
  if (strict && call.token == resource.fence) return Effect::Verdict::kStale;
  raise(resource.fence, resource.done, resource.last, call.token);
  if (PAWL_MUTANT(operation_number_ignored)) return Effect::Verdict::kAdmitted;
  if (!keeps_one_number(call.resource)) {
    return resource.done.contains(call.op) ? Effect::Verdict::kReplayed
                                           : Effect::Verdict::kAdmitted;
  }
  if (call.op > resource.last) return Effect::Verdict::kAdmitted;
  if (call.op == resource.last || PAWL_MUTANT(smaller_operation_replayed))
    return Effect::Verdict::kReplayed;
  return Effect::Verdict::kStaleOp;
}

void GuardModel::change(Resource& resource, const GuardCall& call, Effect& effect) {
  effect.changed = true;
  resource.done.insert(call.op);
  resource.last = std::max(resource.last, call.op);
  resource.exists = call.kind == Kind::kWrite;
  // What is deleted leaves its fence behind: a tombstone.
  if (!resource.exists && PAWL_MUTANT(tombstone_dropped)) resource = Resource{};
}

void GuardModel::record(const Effect& effect) {
  history_.effects.push_back(effect);
  world_.note([&] {
    return fmt::format("{}: {} {} of token {}: {}", effect.resource,
                       kKinds[static_cast<int>(effect.kind)], effect.op, effect.token.value,
                       kVerdicts[static_cast<int>(effect.verdict)]);
  });
}

}  // namespace pawl::sim

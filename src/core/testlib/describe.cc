#include "core/testlib/describe.h"

#include <string_view>

namespace pawl::core {
namespace {

std::string number(std::uint64_t n) {
  return std::to_string(n);
}
std::string ms(Millis m) {
  return std::to_string(m.count()) + "ms";
}

std::string maybe(const std::optional<Token>& token) {
  return token ? number(token->value) : "-";
}
std::string maybe(const std::optional<std::uint32_t>& n) {
  return n ? number(*n) : "-";
}

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::kExclusive:
      return "exclusive";
    case Mode::kShared:
      return "shared";
    case Mode::kLimit:
      return "limit";
  }
  return "?";
}

std::string_view name_of(NotObtained::Why why) {
  switch (why) {
    case NotObtained::Why::kBusy:
      return "busy";
    case NotObtained::Why::kTimeout:
      return "timeout";
    case NotObtained::Why::kCancelled:
      return "cancelled";
    case NotObtained::Why::kSuperseded:
      return "superseded";
  }
  return "?";
}

std::string_view name_of(Refused::Why why) {
  switch (why) {
    case Refused::Why::kConflict:
      return "conflict";
    case Refused::Why::kLeasesFull:
      return "leases full";
    case Refused::Why::kLeaseBytesFull:
      return "lease bytes full";
    case Refused::Why::kWaitersFull:
      return "waiters full";
    case Refused::Why::kExhausted:
      return "exhausted";
    case Refused::Why::kRaiseBack:
      return "raise back";
    case Refused::Why::kRaiseTooFar:
      return "raise too far";
    case Refused::Why::kAsksFull:
      return "asks full";
    case Refused::Why::kRestoring:
      return "restoring";
  }
  return "?";
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "+") + part;
  return text;
}

struct OutcomeText {
  std::string operator()(const Granted& g) const {
    return "granted " + describe(g.lease) + " token " + number(g.token.value) + " floor " +
           number(g.floor.value) + " slot " + maybe(g.slot) + " ttl " + ms(g.ttl) + " waited " +
           ms(g.waited);
  }
  std::string operator()(const Queued& q) const { return "queued at " + number(q.position); }
  std::string operator()(const NotObtained& n) const {
    return "not obtained: " + std::string(name_of(n.why));
  }
  std::string operator()(const Renewed& r) const { return "renewed, left " + ms(r.left); }
  std::string operator()(const Released& r) const { return r.was_live ? "released" : "was over"; }
  std::string operator()(const CancelDone& c) const {
    return c.was_waiting ? "cancelled" : "was not waiting";
  }
  std::string operator()(const BreakDone& b) const {
    return b.was_live ? "broken" : "was not live";
  }
  std::string operator()(const AskDone& a) const {
    return std::string(to_text(a.state)) + ", holders " + number(a.holders) + " token " +
           number(a.token.value);
  }
  std::string operator()(const Raised& r) const { return "raised to " + number(r.last.value); }
  std::string operator()(const Lost& l) const {
    return "lost " + std::string(l.ending ? to_text(*l.ending) : "unknown") + " token " +
           number(l.token.value);
  }
  std::string operator()(const Refused& r) const {
    return "refused: " + std::string(name_of(r.why));
  }
};

}  // namespace

std::string describe(LeaseId lease) {
  return "lease" + number(lease.high) + "." + number(lease.low);
}

std::string describe(const Outcome& outcome) {
  return std::visit(OutcomeText{}, outcome);
}

std::string describe(const Reply& reply) {
  return "w" + number(reply.waiter.value) + ": " + describe(reply.outcome);
}

std::string describe(const Output& output, const Event& event) {
  std::string text(to_text(event.kind));
  text += " token " + number(event.token.value);
  if (event.kind == EventKind::kRaised) return text;
  text += " " + std::string(name_of(event.mode)) + " lock " + std::string(output.lock(event));
  text += " owner " + std::string(output.owner(event));
  if (event.ending) text += " ending " + std::string(to_text(*event.ending));
  return text;
}

std::string describe(const HolderView& holder) {
  std::string text = number(holder.token.value) + " " + std::string(name_of(holder.mode));
  text += "/" + number(holder.limit) + " slot " + maybe(holder.slot) + " by " + holder.owner;
  text += " on " + joined(holder.locks) + " held " + ms(holder.held) + " expires " +
          ms(holder.expires_in);
  text += " renewals " + number(holder.renewals) + (holder.breaking ? " breaking" : "");
  for (const auto& [key, value] : holder.meta) {
    text += " ";
    text += key;
    text += "=";
    text += value;
  }
  return text;
}

std::string describe(const LockView& view) {
  std::string text =
      view.lock + " " + std::string(to_text(view.state)) + " token " + maybe(view.token);
  text += " last " + maybe(view.last_token);
  text += " holders " + number(view.holder_count);
  if (view.reopens_in) text += " reopens " + ms(*view.reopens_in);
  for (const HolderView& holder : view.holders) text += "\n    holder " + describe(holder);
  text += "\n    waiters " + number(view.waiters);
  for (const WaiterView& waiter : view.queue) {
    text += "\n    waits " + waiter.owner + " " + std::string(name_of(waiter.mode)) + " " +
            ms(waiter.waited);
  }
  return text;
}

std::string describe(const EpochView& epoch) {
  return number(epoch.token.value) + " " + std::string(name_of(epoch.mode)) + " by " + epoch.owner +
         " on " + joined(epoch.locks) + " from " + number(epoch.granted.value) + " to " +
         number(epoch.ended.value) + " " + std::string(to_text(epoch.how));
}

std::string describe(const Totals& totals) {
  return "last " + number(totals.last_token.value) + " oldest live " +
         maybe(totals.oldest_live_token) + " locks " + number(totals.locks) + " leases " +
         number(totals.leases) + " waiters " + number(totals.waiters);
}

}  // namespace pawl::core

#include "client/observe_flow.h"

#include <algorithm>

#include "base/mutants.h"
#include "wire/command_writer.h"

namespace pawl::client {

// --- Observers -----------------------------------------------------------------------------------

bool Observers::has_prefix(std::string_view prefix) const {
  return std::any_of(flows_.begin(), flows_.end(),
                     [&](const auto& entry) { return entry.second->prefix() == prefix; });
}

std::optional<wire::EventId> Observers::oldest(std::string_view prefix) const {
  std::optional<wire::EventId> oldest;
  for (const auto& [call, flow] : flows_) {
    if (flow->prefix() != prefix || !flow->last()) continue;
    if (!oldest || *flow->last() < *oldest) oldest = flow->last();
  }
  return oldest;
}

void Observers::on_event(const wire::EventPush& event, std::uint64_t order) {
  for (const auto& [call, flow] : flows_) {
    if (flow->accept(event)) observed_.push_back({call, event, order});
  }
}

void Observers::drop_events(CallId call) {
  std::erase_if(observed_, [&](const ObservedEvent& observed) { return observed.call == call; });
}

// --- ObserveFlow ---------------------------------------------------------------------------------

ObserveFlow::ObserveFlow(CallId id, ObserveCall call, Observers& observers)
    : Flow(kNever), id_(id), call_(std::move(call)), observers_(observers), last_(call_.from) {
  observers_.add(id_, *this);
}

ObserveFlow::~ObserveFlow() {
  observers_.remove(id_);
}

bool ObserveFlow::accept(const wire::EventPush& event) {
  // An event without a lock, such as a reset, concerns every observation.
  const bool ours = event.lock.empty() || event.lock.starts_with(call_.prefix);
  if (!last_ || !ours) return false;
  const bool reset = event.kind == wire::EventKind::kReset;
  // Sent again for an observation that continued from an older event.
  // One that is not stored has the number of the event before it.
  const bool same_number_is_old = event.kind != wire::EventKind::kReleaseWanted;
  const bool old = event.id.incarnation == last_->incarnation &&
                   (event.id.n < last_->n || (event.id.n == last_->n && same_number_is_old));
  if (old && !reset) return false;
  last_ = event.id;
  return true;
}

void ObserveFlow::append(std::string& out, Instant) {
  if (step_ == Step::kEnd) return wire::append_command(out, {"UNOBSERVE", call_.prefix});
  if (!last_ || PAWL_MUTANT(resumes_from_now))
    return wire::append_command(out, {"OBSERVE", call_.prefix});
  // pawld keeps one observation per prefix, and the newest FROM counts: it must suit all flows with
  // this prefix.
  wire::append_command(
      out, {"OBSERVE", call_.prefix, "FROM", to_text(*observers_.oldest(call_.prefix))});
}

void ObserveFlow::on_reply(const wire::Value& value, Instant) {
  if (step_ == Step::kEnd) return finish();
  if (value.is_error()) return finish_with(failure(wire::error_from_line(value.text)));
  if (completed()) return unobserve();  // Cancelled meanwhile.
  began(value);
}

void ObserveFlow::began(const wire::Value& value) {
  const auto id = wire::event_id_from_text(value.as_text().value_or(""));
  if (!id) {
    return finish_with(
        failure({Code::kUnknown, "protocol error: OBSERVE did not answer an event id"}));
  }
  park();
  if (last_) return;  // It continues.
  last_ = id;
  observers_.report(ObservedEvent{id_});
}

// pawld drops the observations of a connection when it closes.
void ObserveFlow::resume_after_disconnect(Instant) {
  completed() ? finish() : ready();
}

void ObserveFlow::cancel(Instant) {
  const State was = state();
  complete(Result<ObserveEnded>(ObserveEnded{}));
  observers_.remove(id_);
  observers_.drop_events(id_);
  if (was == State::kSent) return;  // Its reply comes first.
  was == State::kParked ? unobserve() : finish();
}

void ObserveFlow::unobserve() {
  if (observers_.has_prefix(call_.prefix)) return finish();
  step_ = Step::kEnd;
  ready();
}

}  // namespace pawl::client

#include "client/observe_flow.h"

#include "base/mutants.h"
#include "wire/command_writer.h"

namespace pawl::client {

ObserveFlow::ObserveFlow(CallId id, ObserveCall call, Observers& observers)
    : Flow(kNever), id_(id), call_(std::move(call)), observers_(observers), last_(call_.from) {
  observers_.add(id_, *this);
}

ObserveFlow::~ObserveFlow() {
  observers_.remove(id_);
}

bool ObserveFlow::news(const wire::EventPush& event) {
  // One without a name, such as a reset, concerns everyone.
  const bool ours = event.lock.empty() || event.lock.starts_with(call_.prefix);
  if (!last_ || !ours) return false;
  const bool reset = event.kind == wire::EventKind::kReset;
  // Told before, for the sake of an observation that goes on from further back.
  const bool old = event.id.incarnation == last_->incarnation && event.id.n <= last_->n;
  if (old && !reset) return false;
  last_ = event.id;
  return true;
}

void ObserveFlow::append(std::string& out, Instant) {
  if (step_ == Step::kEnd) return wire::append_command(out, {"UNOBSERVE", call_.prefix});
  if (!last_ || PAWL_MUTANT(resumes_from_now))
    return wire::append_command(out, {"OBSERVE", call_.prefix});
  // For pawld it is one observation, however many share the prefix: the newest FROM counts, so it
  // must suit all of them.
  wire::append_command(
      out, {"OBSERVE", call_.prefix, "FROM", to_text(*observers_.oldest(call_.prefix))});
}

void ObserveFlow::on_reply(const wire::Value& value, Instant) {
  if (step_ == Step::kEnd) return finish();
  if (value.is_error()) return finish_with(failure(wire::error_from_line(value.text)));
  if (told()) return unobserve();  // Cancelled meanwhile.
  began(value);
}

void ObserveFlow::began(const wire::Value& value) {
  const auto id = wire::event_id_from_text(value.as_text().value_or(""));
  if (!id) return finish_with(failure({Code::kUnknown, "the answer to OBSERVE is no id"}));
  park();
  if (last_) return;  // It goes on.
  last_ = id;
  observers_.tell(Sighting{id_});
}

// pawld forgets what a connection observes when that ends.
void ObserveFlow::on_cut(Instant) {
  told() ? finish() : ready();
}

void ObserveFlow::cancel(Instant) {
  const State was = state();
  tell(Result<Unobserved>(Unobserved{}));
  observers_.remove(id_);
  observers_.forget(id_);
  if (was == State::kSent) return;  // Its reply comes first.
  was == State::kParked ? unobserve() : finish();
}

void ObserveFlow::unobserve() {
  if (observers_.want(call_.prefix)) return finish();
  step_ = Step::kEnd;
  ready();
}

}  // namespace pawl::client

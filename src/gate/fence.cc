#include "gate/fence.h"

#include <algorithm>

#include "base/assert.h"

namespace pawl::gate {

bool Fence::may_forward(Kind kind) const {
  if (writing_ || mark_.token != max_) return false;
  // The mark got this token after the drain of all lower ones, so a read has nothing to wait for.
  return kind == Kind::kRead || mark_.open;
}

void Fence::arrive(RequestId request, Token token, Kind kind, Instant now, Actions& out) {
  const bool stale = token < max_;
  const bool ahead =
      max_.value != 0 && token > max_ && token.value - max_.value > settings_.step_max;
  if (stale || ahead) {
    const Verdict verdict = stale ? Verdict::kStale : Verdict::kAhead;
    if (settings_.enforce) {
      out.push_back(
          {.type = Action::Type::kRefuse, .request = request, .verdict = verdict, .max = max_});
      return;
    }
    // Let through; the fence does not move (design rule 16).
    forward(request, kind, verdict, now, out);
    return step(now, out);
  }
  if (token > max_) {
    // From now on lower tokens are refused, those that wait included.
    for (const Waiting& lower : std::exchange(waiting_, {})) {
      out.push_back({.type = Action::Type::kRefuse,
                     .request = lower.request,
                     .verdict = Verdict::kStale,
                     .max = token});
    }
    max_ = token;
  }
  if (!settings_.enforce || (waiting_.empty() && may_forward(kind))) {
    forward(request, kind, Verdict::kAdmitted, now, out);
  } else if (stopping_) {
    out.push_back({.type = Action::Type::kGiveUp, .request = request, .max = max_});
  } else if (waiting_.size() >= settings_.waiting_max) {
    out.push_back({.type = Action::Type::kBusy, .request = request, .max = max_});
  } else {
    waiting_.push_back({request, kind, now + settings_.drain_wait});
  }
  step(now, out);
}

void Fence::forward(RequestId request, Kind kind, Verdict verdict, Instant now, Actions& out) {
  if (kind == Kind::kWrite) {
    const bool added = forwards_.emplace(request, Forward{.since = now}).second;
    PAWL_ASSERT(added);
  }
  out.push_back(
      {.type = Action::Type::kForward, .request = request, .verdict = verdict, .max = max_});
}

void Fence::write(Mark mark, Actions& out) {
  PAWL_ASSERT(!writing_);
  writing_ = true;
  next_mark_ = mark;
  out.push_back({.type = Action::Type::kWriteMark, .mark = mark});
}

void Fence::step(Instant now, Actions& out) {
  if (writing_) return;
  if (!settings_.enforce) {
    if (!forwards_.empty() && mark_ != Mark{max_, true}) return write({max_, true}, out);
  } else if (!waiting_.empty()) {
    while (!waiting_.empty() && may_forward(waiting_.front().kind)) {
      const Waiting first = waiting_.front();
      waiting_.pop_front();
      forward(first.request, first.kind, Verdict::kAdmitted, now, out);
    }
    if (!waiting_.empty() && is_drained()) return write({max_, true}, out);
  }
  const bool idle = stopping_ || now >= drained_at_ + settings_.close_after;
  if (mark_.open && waiting_.empty() && is_drained() && idle) write({mark_.token, false}, out);
}

void Fence::answered(RequestId request, Instant now, Actions& out) {
  if (forwards_.erase(request) == 0) return;  // a read, or settled before its late answer came
  if (is_drained()) drained_at_ = now;
  step(now, out);
}

void Fence::timed_out(RequestId request) {
  if (const auto found = forwards_.find(request); found != forwards_.end())
    found->second.timed_out = true;
}

void Fence::lost(RequestId request) {
  if (forwards_.erase(request) != 0) ++lost_;
}

void Fence::leave(RequestId request) {
  std::erase_if(waiting_, [&](const Waiting& each) { return each.request == request; });
}

void Fence::mark_written(Instant now, Actions& out) {
  PAWL_ASSERT(writing_);
  writing_ = false;
  // The idle time before it is closed begins when it can be used.
  if (next_mark_.open) drained_at_ = now;
  mark_ = next_mark_;
  step(now, out);
}

std::size_t Fence::settle(Instant now, Actions& out) {
  std::size_t settled = std::exchange(lost_, 0);
  settled += std::erase_if(forwards_, [](const auto& each) { return each.second.timed_out; });
  if (is_drained()) drained_at_ = now;
  step(now, out);
  return settled;
}

void Fence::stop(Instant now, Actions& out) {
  stopping_ = true;
  for (const Waiting& each : std::exchange(waiting_, {}))
    out.push_back({.type = Action::Type::kGiveUp, .request = each.request, .max = max_});
  step(now, out);
}

void Fence::on_time(Instant now, Actions& out) {
  while (!waiting_.empty() && waiting_.front().until <= now) {
    out.push_back(
        {.type = Action::Type::kGiveUp, .request = waiting_.front().request, .max = max_});
    waiting_.pop_front();
  }
  step(now, out);
}

std::optional<Instant> Fence::next_time() const {
  if (!waiting_.empty()) return waiting_.front().until;
  if (mark_.open && !writing_ && is_drained()) return drained_at_ + settings_.close_after;
  return std::nullopt;
}

FenceView Fence::view() const {
  FenceView view{.max = max_, .mark = mark_, .unknown = lost_, .waiting = waiting_.size()};
  for (const auto& [request, forward] : forwards_) {
    ++(forward.timed_out ? view.unknown : view.in_flight);
    if (!view.oldest || forward.since < *view.oldest) view.oldest = forward.since;
  }
  return view;
}

}  // namespace pawl::gate

#include "sim/server_watch.h"

#include <fmt/format.h>

#include "wire/command_writer.h"

namespace pawl::sim {

std::string ServerWatch::start(Nanos now) {
  decoder_.emplace();
  unread_.clear();
  answers_ = 0;
  started_ = now;
  durable_.clear();
  exclusive_.clear();
  owners_.clear();
  gone_.clear();
  ++life_;
  std::string out;
  wire::append_command(out, {"HELLO", "3"});
  wire::append_command(out, {"OBSERVE", ""});
  return out;
}

void ServerWatch::received(std::string_view bytes, Nanos now, std::optional<Nanos> held_since) {
  unread_.append(bytes);
  std::size_t taken = 0;
  for (;;) {
    const wire::DecodedReply reply = decoder_->decode(std::string_view(unread_).substr(taken));
    taken += reply.consumed;
    if (reply.status != wire::DecodeStatus::kComplete) break;
    const auto event = wire::read_event(reply.value);
    if (!event) {
      ++answers_;
      continue;
    }
    if (event->id.n <= newest_) {
      faults_.push_back(fmt::format("EL: event {} is sent after one with number {:x}",
                                    to_text(event->id), newest_));
    }
    newest_ = event->id.n;
    sent_.push_back({event->id, event->kind, event->lock, event->token, life_});
    see(*event, now, held_since.value_or(now));
  }
  unread_.erase(0, taken);
}

void ServerWatch::see(const wire::EventPush& event, Nanos now, Nanos durable) {
  switch (event.kind) {
    case wire::EventKind::kGranted:
      return granted(event, durable);
    case wire::EventKind::kReleased:
    case wire::EventKind::kExpired:
    case wire::EventKind::kBroken:
      return ended(event, now);
    default:
      return;
  }
}

void ServerWatch::granted(const wire::EventPush& event, Nanos durable) {
  auto& holders = exclusive_[event.lock];
  if (!holders.empty()) {
    faults_.push_back(fmt::format("G3: \"{}\" is granted as token {} while token {} holds it",
                                  event.lock, event.token.value, holders.begin()->value));
  }
  if (event.mode == "exclusive") holders.insert(event.token);
  durable_.emplace(event.token, durable);
  if (event.owner.empty()) return;  // Not one of the clients' own.
  if (gone_.contains(event.owner)) {
    faults_.push_back(
        fmt::format("G6: token {} is granted to {}, which had hung up while it waited",
                    event.token.value, event.owner));
  }
  const auto [known, fresh] = owners_.emplace(event.owner, event.token);
  if (!fresh && known->second != event.token) {
    faults_.push_back(fmt::format("G5: {} asked once and was granted tokens {} and {}", event.owner,
                                  known->second.value, event.token.value));
  }
}

void ServerWatch::ended(const wire::EventPush& event, Nanos now) {
  exclusive_[event.lock].erase(event.token);
  if (event.how != "expired") return;
  const auto durable = durable_.find(event.token);
  const Nanos since = durable == durable_.end() ? started_ : durable->second;
  if (now - since < ttl_) {
    faults_.push_back(fmt::format("{}: token {} ran out {:.3f} ms after its {}, its TTL is {} ms",
                                  durable == durable_.end() ? "G4" : "G3", event.token.value,
                                  static_cast<double>((now - since).count()) / 1e6,
                                  durable == durable_.end() ? "pawld's start" : "grant was durable",
                                  ttl_.count()));
  }
}

}  // namespace pawl::sim

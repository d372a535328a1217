#include "server/session.h"

#include <fmt/format.h>

namespace pawl::server {

std::string_view Session::address() const {
  const std::string_view peer = peer_;
  return peer.starts_with(kHttpPeer) ? peer.substr(kHttpPeer.size()) : peer;
}

std::string_view Session::user_name() const {
  return user == nullptr ? std::string_view() : user->name;
}

std::string Session::description() const {
  return user == nullptr ? peer_ : fmt::format("{} at {}", user->name, peer_);
}

void Session::receive(std::string_view bytes) {
  if (closing || closed) return;
  drop_taken();
  input_.append(bytes);
}

std::optional<std::span<const std::string_view>> Session::next_command() {
  using FrameSize = wire::CommandDecoder::FrameSize;
  for (;;) {
    taken_ += serving_;
    serving_ = 0;
    if (closing || closed || blocked || auth_delayed || output_paused()) return std::nullopt;
    if (!has_input()) {
      drop_taken();
      return std::nullopt;
    }
    const wire::DecodedCommand command =
        decoder_.decode(std::string_view(input_).substr(taken_),
                        is_bounded_newcomer() ? FrameSize::kNewcomer : FrameSize::kFull);
    if (command.status == wire::DecodeStatus::kNeedMore) return std::nullopt;
    if (command.status == wire::DecodeStatus::kProtocolError) {
      reply().error(command.error, command.message);
      seal(BatchId{});
      protocol_error = command.message;
      closing = true;
      return std::nullopt;
    }
    serving_ = command.consumed;
    if (!command.args.empty()) return command.args;  // A blank line is not a command.
  }
}

std::string_view Session::next_name() const {
  return wire::peek_name(std::string_view(input_).substr(taken_ + serving_));
}

// The decoder counts from the first byte not yet consumed, so bytes may only go when they were.
void Session::drop_taken() {
  taken_ += serving_;
  serving_ = 0;
  input_.erase(0, taken_);
  taken_ = 0;
  if (input_.empty() && input_.capacity() > Outbox::kKeep) input_.shrink_to_fit();
}

}  // namespace pawl::server

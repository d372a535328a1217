// One connection's state: bytes in, commands out; replies in, bytes out. No socket, no clock, no
// rules about locks.
//
//   session.receive(bytes);
//   while (const auto args = session.next_command()) {
//     … session.reply().ok();  session.seal(after);
//   }
//   network.send(session.outbox().ready(durable))
//
// Commands come out one at a time, in order, and replies leave in the order they were sealed.
// next_command() returns nothing while the session is blocked in a WAIT or delayed after a wrong
// secret, while too much output waits to be read, and once it is closing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "core/accounts.h"
#include "server/network.h"
#include "server/observation.h"
#include "server/outbox.h"
#include "server/users.h"
#include "wire/access.h"
#include "wire/command_decoder.h"
#include "wire/reply_writer.h"

namespace pawl::server {

// How the peer of a connection from within the process is spelled: this, and the address of the
// HTTP client behind it.
inline constexpr std::string_view kHttpPeer = "http:";

// What a connection may use. Each place has a limit of its own.
enum class Place : std::uint8_t {
  kNewcomer,  // it has to authenticate first
  kOrdinary,  // everything that its user may
  kReserved,  // beyond the ordinary connections: renewals only
};

class Session {
 public:
  // Unread output above this stops the serving of further commands; only pushes and one reply can
  // still be added.
  static constexpr std::size_t kOutputPause = 256 * 1024;
  // Unread output above this stops the sending of events. Below the other, so that events never
  // hold up a renewal.
  static constexpr std::size_t kEventsPause = kOutputPause / 2;
  // Unserved input above this is too much. More than a frame, so that a frame can always be
  // completed.
  static constexpr std::size_t kInputPause = limits::kBehindWaitMax;
  static_assert(kInputPause > limits::kFrameMax);
  // The same for one that has not authenticated.
  static constexpr std::size_t kNewcomerInputPause = 2 * limits::kNewcomerFrameMax;

  Session(ConnectionId id, std::string peer) : id_(id), peer_(std::move(peer)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] ConnectionId id() const { return id_; }
  // As CLIENT LIST shows it: the address, behind kHttpPeer where it is that of an HTTP client.
  [[nodiscard]] const std::string& peer() const { return peer_; }

  // --- For log lines: the fields `address` and `user`, and both in words -------------------------
  [[nodiscard]] std::string_view address() const;
  // Empty when there is none.
  [[nodiscard]] std::string_view user_name() const;
  [[nodiscard]] std::string description() const;

  // --- Input -------------------------------------------------------------------------------------
  void receive(std::string_view bytes);
  // The next whole command, its name first; nothing when there is none to serve now. A protocol
  // error is answered here and closes the session. The views are valid until the next call of
  // receive() or next_command().
  [[nodiscard]] std::optional<std::span<const std::string_view>> next_command();
  // The name of the next command, as far as it can be told without serving it; empty otherwise.
  [[nodiscard]] std::string_view next_name() const;
  [[nodiscard]] bool has_input() const { return taken_ < input_.size(); }
  [[nodiscard]] bool wants_input() const {
    return input_.size() - taken_ < (is_bounded_newcomer() ? kNewcomerInputPause : kInputPause);
  }

  // --- Output ------------------------------------------------------------------------------------
  [[nodiscard]] wire::ReplyWriter reply() { return {outbox_.open(), protocol}; }
  void seal(BatchId after) { outbox_.seal(after); }
  [[nodiscard]] Outbox& outbox() { return outbox_; }
  [[nodiscard]] const Outbox& outbox() const { return outbox_; }
  // Too much of it is unread: no further command is served.
  [[nodiscard]] bool output_paused() const {
    return outbox_.size() >= (is_bounded_newcomer() ? limits::kNewcomerOutputMax : kOutputPause);
  }

  // --- State, set by the classes of the engine ---------------------------------------------------
  wire::Protocol protocol = wire::Protocol::kResp2;
  std::string name, library, library_version;  // CLIENT SETNAME and SETINFO
  wire::Access access = wire::Access::kNone;
  UserPtr user;                 // nullptr: not authenticated, or pawld has no users
  core::AccountId account = 0;  // the user's, in the core; 0: nobody in particular
  std::uint32_t waits = 0;      // chain of its waits in the WaitTable
  std::uint32_t async_waits = 0;
  std::unique_ptr<Observation> observation;  // nullptr: it does not observe
  std::uint64_t commands = 0;
  std::uint64_t work_end = 0;  // for TurnBudget: where its share of all work ends so far
  Tick since{};                // when it connected
  Tick active{};               // when it last sent a command
  bool blocked = false;        // in a WAIT without ASYNC, or in a BACKUP
  bool backing_up = false;     // of these: in a BACKUP
  bool auth_delayed = false;   // after a wrong secret: served again from auth_delayed_until on
  Tick auth_delayed_until{};
  bool in_process = false;  // of another thread of this process, on behalf of an HTTP client
  Place place = Place::kOrdinary;
  bool hung_up = false;             // the peer sends no more; nothing is queued for it
  std::string_view protocol_error;  // the error that ended it, until it is logged
  bool closing = false;             // serve nothing more; close when the outbox is empty
  bool closed = false;              // the network has closed it; only its waits are left to cancel

  // --- Membership in the lists of Connections, so that none holds a session twice ----------------
  std::size_t output_counted = 0;  // of its unread output, in the total of Connections
  bool in_ready = false;
  bool in_dirty = false;
  bool stalled = false;       // the network took less than it was given
  bool input_paused = false;  // the driver was asked not to read
  bool hangup_pending = false;

 private:
  // One of another thread of this process is bounded there.
  [[nodiscard]] bool is_bounded_newcomer() const {
    return place == Place::kNewcomer && !in_process;
  }
  void drop_taken();

  const ConnectionId id_;
  const std::string peer_;
  std::string input_;
  std::size_t taken_ = 0;    // input_ before this offset was served
  std::size_t serving_ = 0;  // bytes of the command that is being served
  wire::CommandDecoder decoder_;
  Outbox outbox_;
};

}  // namespace pawl::server

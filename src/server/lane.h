// The lane: how another thread of this process talks to the engine, as a client like any other.
//
//   the guest's thread                                        the loop's thread, each turn
//   const auto id = lane.open("http:127.0.0.1:4711", bytes);  lane.serve(engine, kLanePerTurn);
//   for (Lane::Delivery& d : lane.take()) …                   lane.deliver(id, reply), from Network::send
//
// Bytes in, bytes out: the guest writes RESP (wire/command_writer.h) and reads RESP
// (wire/reply_decoder.h), so there is one command path, one table of permissions and one set of
// limits, whoever asks. Everything is bounded: how many connections there are, how many messages
// wait, and how much of a connection's output the guest has not read yet. The loop takes only so
// many messages per turn; a flood of the guest therefore waits in the guest, and never in front of
// a renewal.
//
// Threads: what is marked *guest* belongs to one other thread, what is marked *loop* to the loop's.
// Neither waits for the other longer than for moving a few pointers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "server/network.h"

namespace pawl::server {

class Engine;

class Lane {
 public:
  using Wake = std::function<void()>;
  // Looks at the engine on the loop's thread, copies what it needs, and answers what is to be done
  // with it on the guest's.
  using Look = std::function<std::function<void()>(const Engine&)>;

  struct Bounds {
    std::size_t connections = limits::kLaneConnections;
    std::size_t messages = limits::kLaneMessages;
    std::size_t unread = limits::kLaneUnread;
  };
  // What the guest is told, in order.
  struct Delivery {
    ConnectionId connection;
    std::string bytes;    // of replies; to be acknowledged with read()
    bool closed = false;  // the engine is done with it: nothing follows, and the id is forgotten
    std::function<void()> looked;  // the other half of a look(); then the rest is empty
  };

  explicit Lane(Bounds bounds) : bounds_(bounds) {}
  Lane() : Lane(Bounds{}) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Before the threads meet: how each is woken when there is something for it. Called on the other's thread.
  void wake_loop_with(Wake wake) { wake_loop_ = std::move(wake); }
  void wake_guest_with(Wake wake) { wake_guest_ = std::move(wake); }

  // --- Guest -------------------------------------------------------------------------------------
  // A new connection that has sent `bytes`. `user`: whom a certificate says it speaks for; before
  // anything is served it becomes that user, when there is one of this name. Nothing: the lane is
  // full, and nothing happened.
  [[nodiscard]] std::optional<ConnectionId> open(std::string peer, std::string bytes,
                                                 std::string user = "");
  // False: the lane is full. A connection that is closed already swallows everything; the delivery
  // that says so is under way.
  [[nodiscard]] bool send(ConnectionId connection, std::string bytes);
  [[nodiscard]] bool look(Look look);
  // As a peer that closes its end: what was sent before is served and answered, waits end, then it
  // is closed. Never refused.
  void hang_up(ConnectionId connection);
  // So much of what was delivered is out of the way. Never refused.
  void read(ConnectionId connection, std::size_t bytes);
  [[nodiscard]] std::vector<Delivery> take();

  // --- Loop --------------------------------------------------------------------------------------
  // Ids of the lane and of sockets never meet.
  [[nodiscard]] static bool owns(ConnectionId id) { return (id.value & kMark) != 0; }
  // Passes at most `most` messages on to the engine. True: more are waiting.
  bool serve(Engine& engine, std::size_t most);
  // As Network::send and Network::close.
  std::size_t deliver(ConnectionId connection, std::string_view bytes);
  void close(ConnectionId connection);

 private:
  static constexpr std::uint64_t kMark = std::uint64_t{1}
                                         << 62;  // Positive also where ids are shown signed.

  enum class Kind : std::uint8_t { kOpen, kBytes, kHangup, kRoom, kLook };
  struct Message {
    Kind kind;
    ConnectionId connection;
    std::string text;  // kOpen: the peer. kBytes: what it sent.
    Look look;
    std::string user = {};  // kOpen
  };
  struct Line {
    std::size_t unread = 0;  // delivered, and not acknowledged
    bool stalled = false;    // the engine was told that there is no room
    bool hung_up = false;
  };

  [[nodiscard]] bool full() const { return messages_.size() >= bounds_.messages; }
  void pass(Engine& engine, Message& message);
  // Both take the lock that protects what they change, and let it go before they wake anyone.
  void push(std::unique_lock<std::mutex> lock, Message message);
  void push(std::unique_lock<std::mutex> lock, Delivery delivery);

  const Bounds bounds_;
  Wake wake_loop_, wake_guest_;

  std::mutex mutex_;
  std::deque<Message> messages_;      // to the loop
  std::vector<Delivery> deliveries_;  // to the guest
  std::unordered_map<ConnectionId, Line> lines_;
  std::uint64_t last_ = 0;
};

}  // namespace pawl::server

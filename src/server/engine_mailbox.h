// The engine's mailbox: how another thread of this process is a client of the engine like any
// other.
//
// The client's thread:
//   const auto id = mailbox.open("http:127.0.0.1:4711", bytes);
//   for (EngineMailbox::Delivery& d : mailbox.take()) …
//
// The loop's thread, each turn:
//   mailbox.serve(engine, kMailboxPerTurn);
//   mailbox.deliver(id, reply);  // from Network::send
//
// Bytes in, bytes out: the client writes RESP (wire/command_writer.h) and reads RESP
// (wire/reply_decoder.h), so there is one command path, one table of permissions and one set of
// limits for all clients. Everything is bounded: how many connections there are, how many messages
// wait, and how much of a connection's output the client has not read yet. The loop takes only a
// few messages per turn; a flood of the client therefore waits in the client, and never in front of
// a renewal.
//
// Threads: the part marked *client* belongs to one other thread, the part marked *loop* to the
// loop's. Neither waits for the other longer than for moving a few pointers.
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
#include "base/waker.h"
#include "server/network.h"

namespace pawl::server {

class Engine;

class EngineMailbox {
 public:
  // Reads from the engine on the loop's thread, copies what it needs, and returns what is to be
  // done with it on the client's.
  using Query = std::function<std::function<void()>(const Engine&)>;

  struct Bounds {
    std::size_t connections = limits::kMailboxConnections;
    std::size_t messages = limits::kMailboxMessages;
    std::size_t unread = limits::kMailboxUnread;
  };
  // What the client receives, in order.
  struct Delivery {
    ConnectionId connection;
    std::string bytes;    // of replies; to be acknowledged with read()
    bool closed = false;  // the engine is done with it: nothing follows, and the id is forgotten
    std::function<void()> result;  // of a query(), to be called; then the rest is empty
  };

  explicit EngineMailbox(Bounds bounds) : bounds_(bounds) {}
  EngineMailbox() : EngineMailbox(Bounds{}) {}
  EngineMailbox(const EngineMailbox&) = delete;
  EngineMailbox& operator=(const EngineMailbox&) = delete;

  // Before both threads use it: how each is woken when there is something for it. Called on the
  // other one's thread.
  void wake_loop_with(Waker* waker) { loop_waker_ = waker; }
  void wake_client_with(std::function<void()> wake) { wake_client_ = std::move(wake); }

  // --- Client ------------------------------------------------------------------------------------
  // A new connection that has sent `bytes`. `user`: the one that a certificate names; before
  // anything is served the connection becomes that user, where it exists. Nothing: the mailbox is
  // full, and nothing happened.
  [[nodiscard]] std::optional<ConnectionId> open(std::string peer, std::string bytes,
                                                 std::string user = "");
  // False: the mailbox is full. Bytes for a connection that is closed already are dropped; the
  // delivery that reports it is under way.
  [[nodiscard]] bool send(ConnectionId connection, std::string bytes);
  [[nodiscard]] bool query(Query query);
  // As a peer that closes its end: what was sent before is served and answered, waits end, then it
  // is closed. Never refused.
  void hang_up(ConnectionId connection);
  // That many of the delivered bytes were processed. Never refused.
  void read(ConnectionId connection, std::size_t bytes);
  [[nodiscard]] std::vector<Delivery> take();

  // --- Loop --------------------------------------------------------------------------------------
  // Ids of the mailbox and of sockets differ.
  [[nodiscard]] static bool owns(ConnectionId id) { return (id.value & kMark) != 0; }
  // Passes at most `most` messages on to the engine. True: more are waiting.
  bool serve(Engine& engine, std::size_t most);
  // As Network::send and Network::close.
  std::size_t deliver(ConnectionId connection, std::string_view bytes);
  void close(ConnectionId connection);

 private:
  // Positive also where ids are shown as signed numbers.
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 62;

  enum class Kind : std::uint8_t { kOpen, kBytes, kHangup, kWritable, kQuery };
  struct Message {
    Kind kind;
    ConnectionId connection;
    std::string text;  // kOpen: the peer. kBytes: what it sent.
    Query query;
    std::string user = {};  // kOpen
  };
  struct Channel {
    std::size_t unread = 0;  // delivered, and not acknowledged
    bool stalled = false;    // it took less than the engine wanted to send
    bool hung_up = false;
  };

  [[nodiscard]] bool full() const { return messages_.size() >= bounds_.messages; }
  void pass(Engine& engine, Message& message);
  // Both take the lock that protects what they change, and release it before they wake a thread.
  void push(std::unique_lock<std::mutex> lock, Message message);
  void push(std::unique_lock<std::mutex> lock, Delivery delivery);

  const Bounds bounds_;
  Waker* loop_waker_ = nullptr;
  std::function<void()> wake_client_;

  std::mutex mutex_;
  std::deque<Message> messages_;      // to the loop
  std::vector<Delivery> deliveries_;  // to the client
  std::unordered_map<ConnectionId, Channel> channels_;
  std::uint64_t last_ = 0;
};

}  // namespace pawl::server

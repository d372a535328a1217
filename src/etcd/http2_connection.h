// One HTTP/2 connection to a server of gRPC, without a socket: bytes in, bytes out.
//
//   Http2Connection connection({.authority = "db1:2379"});
//   send(connection.take_output());                       // begins with the preface
//   const auto call = connection.start({.path = "/etcdserverpb.KV/Txn", .message = bytes});
//   connection.receive(bytes from the socket);
//   for (CallEvent& event : connection.take_events()) …   // messages, then the end of the call
//
// Every call ends with exactly one kEnded, unless it is cancelled. When the connection ends, so do
// its calls, without a code: what the server did is unknown. It has no clock; the owner cancels
// calls whose time is over. libnghttp2 does the protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/types.h"
#include "etcd/grpc.h"

namespace pawl::etcd {

// A call on one connection: the id of its stream.
using StreamId = Number<struct StreamTag>;

struct CallRequest {
  std::string path;                                                // "/etcdserverpb.KV/Range"
  std::string_view message;                                        // Copied.
  std::vector<std::pair<std::string, std::string>> metadata = {};  // Names in lower case.
  Nanos time{0};            // Told to the server, which gives up then; 0: none.
  bool stays_open = false;  // More messages may follow, with send().
};

struct CallEvent {
  enum class Kind : std::uint8_t { kMessage, kEnded };
  StreamId stream;
  Kind kind = Kind::kEnded;
  std::string message = {};  // kMessage
  GrpcStatus status = {};    // kEnded
};

class Http2Connection {
 public:
  struct Options {
    std::string authority;  // "host:port", for the header of that name.
    bool tls = false;
    std::size_t answer_max = limits::kEtcdAnswerMax;
  };

  explicit Http2Connection(Options options);
  ~Http2Connection();
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  // --- Calls -------------------------------------------------------------------------------------
  // Whether start() would succeed: no, once the server has announced that it goes away, or the
  // connection has ended.
  [[nodiscard]] bool accepts_calls() const;
  // Begins a call; its bytes are in the next output. Nothing: see accepts_calls().
  [[nodiscard]] std::optional<StreamId> start(const CallRequest& request);
  // One more message of a call that stays open. Of a call that has ended, it is dropped.
  void send(StreamId stream, std::string_view message);
  // Ends the call here and at the server, without an event.
  void cancel(StreamId stream);
  // Calls under way.
  [[nodiscard]] std::size_t calls() const;

  // --- Bytes -------------------------------------------------------------------------------------
  // False: the connection must be closed, error() says why, and every call has ended.
  [[nodiscard]] bool receive(std::string_view bytes);
  // The connection has ended for another reason: every call ends with it.
  void end(const std::string& why);
  // What is to be sent now; also after receive(). Once it is sent, is_finished() may be true.
  [[nodiscard]] std::string take_output();

  // --- What happened -----------------------------------------------------------------------------
  [[nodiscard]] std::vector<CallEvent> take_events();
  // The server has sent its settings: it is there, and it speaks HTTP/2.
  [[nodiscard]] bool is_established() const;
  // The server has announced that it goes away, and no call is under way: close the connection.
  [[nodiscard]] bool is_finished() const;
  [[nodiscard]] const std::string& error() const;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace pawl::etcd

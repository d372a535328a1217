// A TCP proxy on a loopback port that can fail as networks fail.
//
//   cut()                 nothing passes, in one direction or in both, until it is undone. No
//                         error is visible: connections stay open, new ones are accepted and stay
//                         silent, as behind a switch without power. What was sent meanwhile
//                         arrives afterwards.
//   silence_connections() the present connections stay open but nothing passes on them any more, as
//                         behind a router that forgot them. New ones work.
//   close_at()            closes a connection just before or just after a certain request arrives.
//
// Used by drills between a worker and pawld, and by tests (testlib/threaded_proxy.h runs it on a
// thread). Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "client/address.h"
#include "client/poll_connection.h"
#include "drill/pollable.h"
#include "pawl/result.h"

namespace pawl::drill {

enum class Cut : std::uint8_t { kNone, kBoth, kToServer, kFromServer };

enum class CloseAt : std::uint8_t {
  kRequest,  // Before the request is forwarded: the server never receives it.
  kReply,    // Before the reply is forwarded: the server has acted, the client does not know.
};

class TcpProxy final : public Pollable {
 public:
  // Connections are forwarded to the addresses of `server` in turn. kUnavailable: no free port, or
  // its host name cannot be resolved.
  static Result<std::unique_ptr<TcpProxy>> open(const std::vector<client::Address>& server);

  // Where clients connect: "127.0.0.1:PORT".
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::uint16_t port() const;

  void cut(Cut cut) { cut_ = cut; }
  void silence_connections();
  // Once, for the next request that contains these bytes. They must arrive in one piece.
  void close_at(CloseAt when, std::string request);

  [[nodiscard]] std::vector<pollfd> interest() const override;
  void on_ready(std::span<const pollfd> ready) override;

 private:
  // Bytes on their way in one direction.
  struct Channel {
    std::string waiting;
    bool ended = false;  // The sender has closed; passed on once `waiting` is empty.
  };
  struct Connection {
    UniqueFd client, server;
    Channel to_server, from_server;
    bool silent = false;
    bool close_on_reply = false;
  };

  TcpProxy(UniqueFd listener, std::vector<client::Endpoint> server);
  [[nodiscard]] bool passes(Cut direction) const {
    return cut_ == Cut::kNone || (cut_ != direction && cut_ != Cut::kBoth);
  }
  void accept();
  UniqueFd connect();
  // These return false when the connection is to be closed.
  bool serve(Connection& connection, const pollfd& client, const pollfd& server);
  bool receive_request(Connection& connection);
  bool receive_reply(Connection& connection);
  static bool send(int to, Channel& channel);

  const UniqueFd listener_;
  const std::vector<client::Endpoint> server_;
  std::size_t next_ = 0;  // index of the address that the next connection goes to
  Cut cut_ = Cut::kNone;
  std::string close_request_;  // of close_at(); empty: not armed
  CloseAt close_when_ = CloseAt::kRequest;
  std::deque<Connection> connections_;
};

}  // namespace pawl::drill

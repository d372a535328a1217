// A connection from a client of the gate: requests come in, answers go out, one after the other.
//
//   head ──▶ body ──▶ handled ──answer──▶ head, or lingering ──▶ closed
//
// The handler sees a request twice: when its head is here (so that a wrong one is refused before
// its body is read), and when its body is here as well, or the first kGateBodyBuffered bytes of it.
// The rest of a longer body is handed over piece by piece. So a client that stops in the middle of
// a short body never reaches the upstream.
//
// Every phase has a time limit. Whoever is too slow is disconnected.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gate/client_socket.h"
#include "gate/http1.h"
#include "gate/poller.h"
#include "http/message.h"

namespace pawl::gate {

class ClientConnection;

class ClientHandler {
 public:
  virtual ~ClientHandler() = default;
  // The head of a request. A problem is the answer to it, and its body is not read.
  virtual std::optional<http::Problem> on_head(ClientConnection& client) = 0;
  // The request may be handled.
  virtual void on_request(ClientConnection& client) = 0;
  // More of its body is here, or its end.
  virtual void on_body(ClientConnection& client) = 0;
  // There is room for more of the answer.
  virtual void on_room(ClientConnection& client) = 0;
  // While a request is handled, the client sends nothing more. (It may still read.)
  virtual void on_silent(ClientConnection& client) = 0;
  // The connection is over. Do not use it after this call.
  virtual void on_closed(ClientConnection& client) = 0;
};

class ClientConnection final : public Watched {
 public:
  using Id = std::uint64_t;
  // Where it came in.
  enum class Door : std::uint8_t { kPublic, kAdmin, kLocalAdmin };

  ClientConnection(Id id, ClientSocket socket, std::string peer, Door door, Poller& poller,
                   ClientHandler& handler);
  ~ClientConnection() override;

  [[nodiscard]] Id id() const { return id_; }
  [[nodiscard]] Door door() const { return door_; }
  [[nodiscard]] const std::string& peer() const { return peer_; }
  // Whether it is between two requests.
  [[nodiscard]] bool is_idle() const { return state_ == State::kHead && in_.empty(); }

  // --- The request --------------------------------------------------------------------------
  [[nodiscard]] const RequestHead& head() const { return head_; }
  // What has arrived of its body and was not taken.
  [[nodiscard]] std::string take_body();
  [[nodiscard]] const std::string& body() const { return payload_; }
  [[nodiscard]] bool body_done() const { return body_.done(); }
  [[nodiscard]] bool is_handled() const { return state_ == State::kHandled; }

  // --- The answer: respond(); or begin(), send() and end() -----------------------------------
  void respond(const http::Response& response);
  void respond(const http::Problem& problem) { respond(to_response(problem)); }
  void begin(int status, std::string_view reason, Headers headers, Framing body);
  void send(std::string_view payload);
  void end();
  [[nodiscard]] bool has_begun() const { return begun_; }
  // Whether the client has to read before more is sent.
  [[nodiscard]] bool is_full() const;
  // Ends the connection at once. The client notices that its answer is not complete.
  void cut();
  // No more requests after this one.
  void close_after_answer() { keep_alive_ = false; }

  void on_events(std::uint32_t events) override;
  void on_deadline() override;

 private:
  enum class State : std::uint8_t { kHead, kBody, kHandled, kLingering, kClosed };

  void receive();
  // Handles what was received, until more is needed.
  void process();
  bool process_head();
  bool process_body();
  void refuse(const http::Problem& problem);
  void flush();
  // Its answer is written, if not sent, and no other follows.
  [[nodiscard]] bool is_last_answer() const { return ended_ && !keep_alive_; }
  // What to wait for now.
  void update();
  [[nodiscard]] bool wants_input() const;
  [[nodiscard]] std::optional<Instant> deadline() const;
  void close();

  const Id id_;
  ClientSocket socket_;
  const std::string peer_;
  const Door door_;
  Poller& poller_;
  const Poller::Key key_;
  ClientHandler& handler_;

  State state_ = State::kHead;
  bool processing_ = false;
  bool silent_ = false;    // It sends nothing more.
  std::string in_, out_;   // received and not handled; to be sent
  Instant phase_began_;    // of the state; of the request, while its head arrives
  Instant last_progress_;  // bytes in either direction
  std::size_t lingered_ = 0;

  RequestHead head_;
  BodyReader body_;
  std::string payload_;
  bool keep_alive_ = true;
  bool begun_ = false, ended_ = false;  // the answer
  Framing answer_body_{};
};

}  // namespace pawl::gate

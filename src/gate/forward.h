// One request on its way to the upstream, on a connection of its own, until its answer is complete.
//
// A connection carries one request only. A connection that is used again may be closed by the
// upstream at the very moment a request is sent on it, and then nobody knows whether the request
// had an effect; and what one request is cannot depend on where another one ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/client_connection.h"
#include "gate/fences.h"
#include "gate/http1.h"
#include "gate/poller.h"
#include "net/socket.h"

namespace pawl::gate {

class Forward;

// How a forward ended.
enum class Outcome : std::uint8_t {
  kAnswered,  // its answer is complete
  kNotSent,   // nothing of it was sent: it has no effect
  kUnknown,   // it may have had an effect, or still have one
};

class ForwardHandler {
 public:
  virtual ~ForwardHandler() = default;
  virtual void on_answer_head(Forward& forward, const ResponseHead& head) = 0;
  virtual void on_answer_body(Forward& forward, std::string_view payload) = 0;
  // More of the request's body can be sent.
  virtual void on_forward_room(Forward& forward) = 0;
  // Nothing was heard for the time that the upstream has. It continues.
  virtual void on_late(Forward& forward) = 0;
  // It is over. Do not use it after this call.
  virtual void on_end(Forward& forward, Outcome outcome, const std::string& why) = 0;
};

// What is sent first; the rest of a long body follows with send_body().
struct ForwardRequest {
  std::string bytes;
  Framing rest{};  // kNone: the bytes are all of it
  bool is_head = false;
};

class Forward final : public Watched {
 public:
  struct Settings {
    std::vector<net::Endpoint> endpoints;  // not empty
    Nanos timeout;                         // without a byte from or to the upstream
  };
  // `settings` outlives it.
  Forward(RequestId id, ForwardRequest request, const Settings& settings, Poller& poller,
          ForwardHandler& handler);
  ~Forward() override;
  // Connects; the handler may be called.
  void start();

  [[nodiscard]] RequestId id() const { return id_; }
  // Set by the handler: who waits for the answer, and the fence it is in flight at.
  ClientConnection* client = nullptr;
  NamedFence* fence = nullptr;
  bool is_late = false;

  void send_body(std::string_view payload, bool is_end);
  [[nodiscard]] bool is_full() const;
  // Whether the whole request has been handed over.
  [[nodiscard]] bool has_request() const { return request_complete_; }
  // Reads no more of the answer, until resume().
  void pause();
  void resume();
  // Waits for the rest of the answer until `at`, whatever happens.
  void wait_until(Instant at);
  // Ends it: kNotSent or kUnknown.
  void abort(const std::string& why) { fail(why); }

  void on_events(std::uint32_t events) override;
  void on_deadline() override;

 private:
  void on_connected(net::Socket::Progress progress);
  void receive();
  // Handles what was received; false: it is over.
  bool process();
  void flush();
  void update();
  void fail(const std::string& why);
  void end(Outcome outcome, const std::string& why);

  const RequestId id_;
  const Settings& settings_;
  Poller& poller_;
  const Poller::Key key_;
  ForwardHandler& handler_;

  net::Socket socket_;
  std::size_t endpoint_ = 0;  // of settings_
  std::string why_;           // the first ones failed
  std::string out_, in_;
  Framing rest_{};
  bool any_sent_ = false;  // of the request
  bool request_complete_ = false;
  bool is_head_ = false;
  bool head_here_ = false;
  bool paused_ = false;
  bool over_ = false;
  BodyReader answer_;
  Instant last_progress_;
  std::optional<Instant> until_;
};

}  // namespace pawl::gate

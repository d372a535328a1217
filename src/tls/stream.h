// One TLS connection without a socket: ciphertext and plaintext in, plaintext and ciphertext out.
// It does no I/O; the owner of the socket passes the bytes.
//
//   tls::Stream stream(*context);                      // a server; a client also passes the host
//   stream.receive(bytes from the socket);
//   while (const auto count = stream.read(buffer)) …   // plaintext
//   const auto sent = stream.send(plaintext, [&](std::string_view bytes) { return ::send(…); });
//   if (stream.state() == tls::Stream::State::kFailed) {
//     stream.flush(…);                                 // the alert
//     log(stream.error());
//   }
//
// A client has something to send at once: begin with flush(). Not for two threads at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tls/context.h"
#include "tls/handles.h"

namespace pawl::tls {

class Stream {
 public:
  enum class State : std::uint8_t {
    kHandshake,  // No plaintext can be sent or read yet.
    kOpen,
    kEnded,   // The peer has ended its side; we may still send.
    kFailed,  // Unusable; error() says why.
  };

  // A server.
  explicit Stream(const ServerContext& context);
  // A client. `host` is the name or address that it connects to. `alpn` is the protocol that it
  // wants to speak, as in "h2"; empty: it names none.
  Stream(const ClientContext& context, const std::string& host, const std::string& alpn = {});
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] State state() const { return state_; }
  // Why it failed, for people.
  [[nodiscard]] const std::string& error() const { return error_; }
  // It failed because the peer does not speak TLS at all.
  [[nodiscard]] bool peer_is_plain() const { return peer_is_plain_; }
  // It failed because of the configuration of one of the two ends, not because the connection
  // broke: trying again does not help.
  [[nodiscard]] bool failed_by_configuration() const {
    return state_ == State::kFailed && !closed_in_handshake_;
  }
  // The common name of the peer's certificate, once it is verified; empty if there is none.
  [[nodiscard]] std::string peer_name() const;

  // The protocol that both ends agreed on by ALPN; empty if there is none.
  [[nodiscard]] std::string_view alpn() const;

  // --- From the peer -----------------------------------------------------------------------------
  void receive(std::string_view ciphertext);
  // The socket has reached its end. The peer's close_notify may be missing: the frames of the
  // protocol above show what is complete.
  void receive_end();
  // Writes plaintext to `into` and returns the number of bytes; 0 if there are no more for now.
  [[nodiscard]] std::size_t read(std::span<char> into);

  // --- To the peer -------------------------------------------------------------------------------
  // Encrypts and sends `plaintext`. `to_socket` takes bytes and returns how many it has sent; fewer
  // if the socket is full. Returns how many bytes of plaintext have been sent completely. The
  // caller must pass the rest again, first, in the next call, because it may be encrypted already.
  // So the caller always knows what the peer is still to receive.
  template <class Send>
  std::size_t send(std::string_view plaintext, Send&& to_socket) {
    std::size_t done = 0;
    while (flush(to_socket) && state_ != State::kHandshake && state_ != State::kFailed) {
      done += std::exchange(offered_, 0);
      if (done >= plaintext.size()) break;
      offered_ = encrypt(plaintext.substr(done, kRecordMax));
      if (offered_ == 0) break;
    }
    return done;
  }
  // Sends what TLS itself must send. Returns false if the socket did not take all of it.
  template <class Send>
  bool flush(Send&& to_socket) {
    while (!output().empty()) {
      const std::size_t count = to_socket(output());
      if (count == 0) return false;
      sent_ += count;
    }
    drop_output();
    return true;
  }
  // Whether there is output for flush().
  [[nodiscard]] bool has_output() const { return !output().empty(); }
  // Puts a close_notify into the output.
  void close();

 private:
  static constexpr std::size_t kRecordMax = 16 * 1024;

  explicit Stream(SSL_CTX* context);
  void continue_handshake();
  // Whether an OpenSSL call succeeded; if it failed for good, so has the stream.
  bool succeeded(int result);
  void fail(std::string why);
  void check_first_byte(std::string_view bytes);
  [[nodiscard]] std::size_t encrypt(std::string_view plaintext);
  void take_output();
  void drop_output();
  [[nodiscard]] std::string_view output() const { return std::string_view(output_).substr(sent_); }

  std::string refusal_;  // Why a certificate was refused. Declared before ssl_, which refers to it.
  Handle<SSL> ssl_;
  State state_ = State::kHandshake;
  bool received_ = false;  // At least one byte.
  bool peer_is_plain_ = false;
  bool closed_in_handshake_ = false;
  std::string error_;
  std::string output_;       // Ciphertext.
  std::size_t sent_ = 0;     // Of output_.
  std::size_t offered_ = 0;  // Bytes of plaintext that are encrypted in output_ and not yet sent.
};

}  // namespace pawl::tls

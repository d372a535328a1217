// One TLS connection without a socket: ciphertext and plaintext in, plaintext and ciphertext out.
// No I/O; whoever owns the socket drives it.
//
//   tls::Stream stream(*context);                       // as a server; as a client, also with the host
//   stream.receive(bytes from the socket);
//   while (const auto count = stream.read(buffer)) …    // plaintext
//   const auto left = stream.send(plaintext, [&](std::string_view bytes) { return ::send(…); });
//   if (stream.state() == tls::Stream::State::kFailed) log(stream.error());   // after sending its last output: the alert
//
// A client has something to send at once: begin with flush().
//
// Not for two threads at a time.
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
    kHandshake,  // nothing can be said yet
    kOpen,
    kEnded,   // the peer says no more; we still may
    kFailed,  // of no use any more; error() says why
  };

  explicit Stream(const ServerContext& context);
  // `host` as it is connected to: a name, or an address.
  Stream(const ClientContext& context, const std::string& host);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] State state() const { return state_; }
  // Why it failed; for people.
  [[nodiscard]] const std::string& error() const { return error_; }
  // It failed because the peer does not speak TLS at all.
  [[nodiscard]] bool peer_is_plain() const { return peer_is_plain_; }
  // It failed because of what the two ends were set up with, not because of the line: trying again
  // will not help.
  [[nodiscard]] bool is_misfit() const { return state_ == State::kFailed && !cut_; }
  // The common name of the peer's certificate, once that was verified; empty when it has none.
  [[nodiscard]] std::string peer_name() const;

  // --- From the peer -----------------------------------------------------------------------------
  void receive(std::string_view ciphertext);
  // The socket has come to its end. Without the peer's goodbye that is an end all the same: frames
  // tell what is whole.
  void receive_end();
  // How many bytes of plaintext it put into `into`; 0 when there are no more for now.
  [[nodiscard]] std::size_t read(std::span<char> into);

  // --- To the peer -------------------------------------------------------------------------------
  // Sends `plaintext`, by a function that takes bytes and answers how many have left: fewer when
  // the socket is full. Returns how many bytes from the front have left altogether. What has not
  // must be offered again, first: it may be encrypted already. So nothing is owed to the peer that
  // the caller does not know of.
  template <class Send>
  std::size_t send(std::string_view plaintext, Send&& to_socket) {
    std::size_t left = 0;
    while (flush(to_socket) && state_ != State::kHandshake && state_ != State::kFailed) {
      left += std::exchange(offered_, 0);
      if (left >= plaintext.size()) break;
      offered_ = encrypt(plaintext.substr(left, kRecordMax));
      if (offered_ == 0) break;
    }
    return left;
  }
  // Sends what TLS itself has to say. False when some of it is left for later.
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
  // There is output for flush().
  [[nodiscard]] bool has_output() const { return !output().empty(); }
  // Says goodbye: puts it into the output.
  void close();

 private:
  static constexpr std::size_t kRecordMax = 16 * 1024;

  explicit Stream(SSL_CTX* context);
  void go_on();
  bool judge(int result);
  void fail(std::string why);
  void check_first_byte(std::string_view bytes);
  [[nodiscard]] std::size_t encrypt(std::string_view plaintext);
  void take_output();
  void drop_output();
  [[nodiscard]] std::string_view output() const { return std::string_view(output_).substr(sent_); }

  std::string refusal_;  // why a certificate was refused
  Handle<SSL> ssl_;
  State state_ = State::kHandshake;
  bool heard_ = false;  // anything at all
  bool peer_is_plain_ = false;
  bool cut_ = false;  // the line ended during the handshake
  std::string error_;
  std::string output_;       // ciphertext
  std::size_t sent_ = 0;     // of output_
  std::size_t offered_ = 0;  // plaintext that is encrypted in output_, and not known to have left
};

}  // namespace pawl::tls

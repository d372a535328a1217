// The socket of a client's connection, plain or under TLS. Never blocks.
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "tls/context.h"
#include "tls/stream.h"

namespace pawl::gate {

class ClientSocket {
 public:
  // A connected, non-blocking socket. `tls`: nullptr: plain.
  ClientSocket(UniqueFd socket, std::shared_ptr<const tls::ServerContext> tls);

  [[nodiscard]] int fd() const { return socket_.get(); }
  // Appends what can be read without waiting, up to some KiB. False: nothing more will come.
  bool receive(std::string& into);
  // Sends what fits and removes it from `bytes`; what is left must be at the front of the next
  // call. False: the connection is gone.
  bool send(std::string& bytes);
  // TLS itself has something to send.
  [[nodiscard]] bool has_output() const { return stream_ && stream_->has_output(); }
  [[nodiscard]] bool is_in_handshake() const {
    return stream_ && stream_->state() == tls::Stream::State::kHandshake;
  }
  // The client learns that nothing more is sent.
  void end_sending();
  void close() { socket_.reset(); }

 private:
  std::size_t send_some(std::string_view bytes, bool& lost);

  UniqueFd socket_;
  const std::shared_ptr<const tls::ServerContext> context_;
  std::unique_ptr<tls::Stream> stream_;
};

}  // namespace pawl::gate

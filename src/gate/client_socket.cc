#include "gate/client_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace pawl::gate {

ClientSocket::ClientSocket(UniqueFd socket, std::shared_ptr<const tls::ServerContext> tls)
    : socket_(std::move(socket)), context_(std::move(tls)) {
  if (context_) stream_ = std::make_unique<tls::Stream>(*context_);
}

bool ClientSocket::receive(std::string& into) {
  char buffer[16 * 1024];
  const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  const std::string_view bytes(buffer, static_cast<std::size_t>(got));
  if (!stream_) {
    into += bytes;
    return true;
  }
  stream_->receive(bytes);
  const std::size_t before = into.size();
  char plain[16 * 1024];
  while (const std::size_t count = stream_->read(plain)) into.append(plain, count);
  bool lost = false;
  stream_->flush([&](std::string_view out) { return send_some(out, lost); });
  if (lost || stream_->state() == tls::Stream::State::kFailed) return false;
  return stream_->state() != tls::Stream::State::kEnded || into.size() != before;
}

bool ClientSocket::send(std::string& bytes) {
  bool lost = false;
  const auto out = [&](std::string_view some) { return send_some(some, lost); };
  if (stream_) {
    bytes.erase(0, stream_->send(bytes, out));
    return !lost && stream_->state() != tls::Stream::State::kFailed;
  }
  while (!bytes.empty() && !lost) {
    const std::size_t sent = out(bytes);
    if (sent == 0) break;
    bytes.erase(0, sent);
  }
  return !lost;
}

std::size_t ClientSocket::send_some(std::string_view bytes, bool& lost) {
  for (;;) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    lost = errno != EAGAIN;
    return 0;
  }
}

void ClientSocket::end_sending() {
  if (stream_) {
    bool lost = false;
    stream_->close();
    stream_->flush([&](std::string_view out) { return send_some(out, lost); });
  }
  ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace pawl::gate

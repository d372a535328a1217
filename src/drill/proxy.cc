#include "drill/proxy.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace pawl::drill {
namespace {

// Of one lane; whoever sends more waits. Far above what a worker and pawld say to each other.
constexpr std::size_t kWaitingMax = 1U << 20;

bool later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == EINPROGRESS ||
         error == ENOTCONN;
}

}  // namespace

Result<std::unique_ptr<Proxy>> Proxy::open(const std::vector<client::Address>& pawld) {
  auto endpoints = client::resolve(pawld);
  if (!endpoints) return endpoints.error();
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!listener ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0 ||
      ::listen(listener.get(), 16) != 0) {
    return Error{Code::kUnavailable,
                 fmt::format("no port for the proxy: {}", std::strerror(errno))};
  }
  return std::unique_ptr<Proxy>(new Proxy(std::move(listener), *std::move(endpoints)));
}

Proxy::Proxy(UniqueFd listener, std::vector<client::Endpoint> pawld)
    : listener_(std::move(listener)), pawld_(std::move(pawld)) {}

std::string Proxy::address() const {
  sockaddr_in at{};
  socklen_t size = sizeof(at);
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size);
  return fmt::format("127.0.0.1:{}", ntohs(at.sin_port));
}

std::vector<pollfd> Proxy::interest() const {
  std::vector<pollfd> wanted{{listener_.get(), POLLIN, 0}};
  const auto events = [](const Lane& in, const Lane& out, bool out_passes) {
    const bool reads = !in.ended && in.waiting.size() < kWaitingMax;
    const bool writes = out_passes && !out.waiting.empty();
    return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
  };
  for (const Link& link : links_) {
    const short worker = events(link.to_pawld, link.from_pawld, passes(Cut::kFromPawld));
    const short pawld = events(link.from_pawld, link.to_pawld, passes(Cut::kToPawld));
    // poll() tells of hang-ups unasked, again and again.
    wanted.push_back({worker == 0 ? -1 : link.worker.get(), worker, 0});
    wanted.push_back({pawld == 0 ? -1 : link.pawld.get(), pawld, 0});
  }
  return wanted;
}

void Proxy::turn(std::span<const pollfd> ready) {
  std::size_t at = 1;
  std::deque<Link> kept;
  for (Link& link : links_) {
    if (serve(link, ready[at], ready[at + 1])) kept.push_back(std::move(link));
    at += 2;
  }
  links_ = std::move(kept);
  if (ready[0].revents != 0) accept();
}

bool Proxy::serve(Link& link, const pollfd& worker, const pollfd& pawld) {
  if (worker.revents != 0 && !read(link.worker.get(), link.to_pawld)) return false;
  if (pawld.revents != 0 && !read(link.pawld.get(), link.from_pawld)) return false;
  if (passes(Cut::kToPawld) && !write(link.pawld.get(), link.to_pawld)) return false;
  return !passes(Cut::kFromPawld) || write(link.worker.get(), link.from_pawld);
}

bool Proxy::read(int from, Lane& lane) {
  std::array<char, 16'384> bytes;
  const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0)
    return later(errno) ||
           (lane.ended = true);  // Cut off while we are cut: nobody is told before it mends.
  lane.waiting.append(bytes.data(), static_cast<std::size_t>(got));
  lane.ended = lane.ended || got == 0;
  return true;
}

bool Proxy::write(int to, Lane& lane) {
  while (!lane.waiting.empty()) {
    const ssize_t sent =
        ::send(to, lane.waiting.data(), lane.waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return later(errno);
    lane.waiting.erase(0, static_cast<std::size_t>(sent));
  }
  return !lane.ended;  // One end has hung up: so does the other.
}

void Proxy::accept() {
  UniqueFd worker(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!worker) return;
  UniqueFd pawld = connect();
  if (!pawld) return;
  const int yes = 1;
  for (const int fd : {worker.get(), pawld.get()})
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  links_.push_back({std::move(worker), std::move(pawld), {}, {}});
}

// Without waiting; whether it came to be, the first read or write finds out. Another address the
// next time then.
UniqueFd Proxy::connect() {
  const client::Endpoint& to = pawld_[next_++ % pawld_.size()];
  UniqueFd fd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) != 0 &&
      errno != EINPROGRESS)
    return UniqueFd();
  return fd;
}

}  // namespace pawl::drill

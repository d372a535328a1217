// pawl_bench_echo: the ceilings. It sends back what it gets, on an epoll loop of the same shape as
// pawld's: read every ready socket, then (with --log) make one record of 64 bytes per message
// durable by a single write, then answer. A lock service that answers only what is on disk can
// hardly be faster than this.
//
//   pawl_bench_echo [--port N] [--log FILE] [--log-mib N]      prints "port N" when it listens
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kRecord = 64;
constexpr std::size_t kMessageMax = 4096;
constexpr std::size_t kEventsMax = 1024;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "pawl_bench_echo: %s: %s\n", what, std::strerror(errno));
  std::exit(74);
}

struct FreeBlocks {
  void operator()(char* memory) const { std::free(memory); }
};
using Blocks = std::unique_ptr<char, FreeBlocks>;

Blocks blocks(std::size_t size) {
  auto* memory = static_cast<char*>(std::aligned_alloc(kBlock, size));
  if (memory == nullptr) die("aligned_alloc");
  std::memset(memory, 0, size);
  return Blocks(memory);
}

// A file written full beforehand, so that a commit changes data only, never the file system's own
// records. It wraps.
class Log {
 public:
  Log(const char* path, std::size_t size) : size_(size), buffer_(blocks(kBufferSize)) {
    fd_ = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd_ < 0) die(path);
    const Blocks zeros = blocks(kBufferSize);
    for (std::size_t at = 0; at < size_; at += kBufferSize) {
      if (::pwrite(fd_, zeros.get(), kBufferSize, static_cast<off_t>(at)) != ssize_t{kBufferSize})
        die("prewrite");
    }
    if (::fsync(fd_) != 0) die("fsync");
    ::close(fd_);
    fd_ = ::open(path, O_WRONLY | O_CLOEXEC | O_DIRECT | O_DSYNC);
    if (fd_ < 0) die("open with O_DIRECT (the log must be on a real file system)");
  }
  ~Log() { ::close(fd_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void append(const char* message, std::size_t size) {
    std::memcpy(buffer_.get() + filled_, message, size < kRecord ? size : kRecord);
    filled_ += kRecord;
  }

  // Everything appended since the last call is durable when this returns.
  void commit() {
    if (filled_ == 0) return;
    const std::size_t padded = (filled_ + kBlock - 1) / kBlock * kBlock;
    if (at_ + padded > size_) at_ = 0;
    if (::pwrite(fd_, buffer_.get(), padded, static_cast<off_t>(at_)) !=
        static_cast<ssize_t>(padded))
      die("pwrite");
    at_ += padded;
    filled_ = 0;
  }

 private:
  static constexpr std::size_t kBufferSize = std::size_t{1} << 20;
  static_assert(kEventsMax * kRecord <= kBufferSize, "a turn's messages must fit");

  int fd_ = -1;
  std::size_t size_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  Blocks buffer_;
};

struct Connection {
  int fd = -1;
  std::size_t filled = 0;
  std::array<char, kMessageMax> message{};
};

class Server {
 public:
  Server(std::uint16_t port, Log* log)
      : log_(log),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* where = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, where, size) != 0 || ::listen(listener_, 1024) != 0) die("listen");
    if (::getsockname(listener_, where, &size) != 0) die("getsockname");
    watch(listener_, nullptr);
    std::printf("port %u\n", static_cast<unsigned>(ntohs(address.sin_port)));
    std::fflush(stdout);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[noreturn]] void run() {
    while (true) turn();
  }

 private:
  void turn() {
    std::array<epoll_event, kEventsMax> events;
    const int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    if (ready < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < ready; ++i) {
      auto* connection = static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      connection == nullptr ? accept() : read(connection);
    }
    if (log_ != nullptr) log_->commit();
    for (Connection* each : received_) {
      // Closed loops of small messages: a reply always fits. A peer that went away shows at its
      // next read.
      (void)::send(each->fd, each->message.data(), each->filled, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    received_.clear();
  }

  void accept() {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto* connection = new Connection;
    connection->fd = fd;
    watch(fd, connection);
  }

  void read(Connection* from) {
    const ssize_t got = ::recv(from->fd, from->message.data(), from->message.size(), MSG_DONTWAIT);
    if (got <= 0) {
      ::close(from->fd);
      delete from;
      return;
    }
    from->filled = static_cast<std::size_t>(got);
    if (log_ != nullptr) log_->append(from->message.data(), from->filled);
    received_.push_back(from);
  }

  void watch(int fd, Connection* connection) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = connection;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
  }

  Log* log_;
  int epoll_;
  int listener_;
  std::vector<Connection*> received_;  // connections to answer in this turn
};

}  // namespace

int main(int argc, char** argv) {
  static const option kOptions[] = {{"port", required_argument, nullptr, 'p'},
                                    {"log", required_argument, nullptr, 'l'},
                                    {"log-mib", required_argument, nullptr, 'm'},
                                    {nullptr, 0, nullptr, 0}};
  unsigned long port = 0;
  unsigned long log_mib = 64;
  std::string log_path;
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (found == 'p') {
      port = std::strtoul(optarg, nullptr, 10);
    } else if (found == 'l') {
      log_path = optarg;
    } else if (found == 'm') {
      log_mib = std::strtoul(optarg, nullptr, 10);
    } else {
      std::fputs("usage: pawl_bench_echo [--port N] [--log FILE] [--log-mib N]\n", stderr);
      return 64;
    }
  }
  if (port > 65535 || log_mib == 0) {
    std::fputs("pawl_bench_echo: --port goes to 65535, --log-mib starts at 1\n", stderr);
    return 64;
  }
  std::unique_ptr<Log> log;
  if (!log_path.empty()) log = std::make_unique<Log>(log_path.c_str(), log_mib << 20);
  Server(static_cast<std::uint16_t>(port), log.get()).run();
}

#include "gate/serve.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "gate/limits.h"
#include "gate/mark_file.h"
#include "gate/proxy.h"
#include "net/resolve.h"
#include "server/listener.h"
#include "store/posix_files.h"

namespace pawl::gate {
namespace {

namespace json = boost::json;

constexpr std::string_view kSocketName = "admin.sock";

Error failed(std::string_view what, const std::string& path) {
  return {Code::kUnavailable, fmt::format("cannot {} {}: {}", what, path, std::strerror(errno))};
}

// --- The upstream --------------------------------------------------------------------------------

Result<std::vector<net::Endpoint>> find_upstream(const GateOptions& options) {
  constexpr std::string_view kPlain = "http://", kTls = "https://";
  std::string_view rest = options.upstream;
  const bool tls = rest.starts_with(kTls);
  const auto invalid = [&](std::string_view why) {
    return Error{Code::kInvalid, fmt::format("--upstream {}: {}; write e.g. http://127.0.0.1:9000",
                                             options.upstream, why)};
  };
  if (!tls && !rest.starts_with(kPlain))
    return invalid("it does not begin with http:// or https://");
  rest.remove_prefix(tls ? kTls.size() : kPlain.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.empty() || rest.find_first_of("/?#@") != std::string_view::npos)
    return invalid("it is more than a host and a port");
  const bool has_port = rest.rfind(':') != std::string_view::npos && rest.back() != ']';
  const auto address = server::parse_listen_address(
      has_port ? std::string(rest) : fmt::format("{}:{}", rest, tls ? 443 : 80));
  if (!address) return invalid(address.error().detail);
  std::uint16_t port = 0;
  std::from_chars(address->port.data(), address->port.data() + address->port.size(), port);
  auto endpoints = net::resolve(address->host, port);
  if (!endpoints) return Error{Code::kInvalid, "--upstream: " + endpoints.error().detail};
  if (!tls) return endpoints;
  const auto context = tls::ClientContext::load({.ca = options.upstream_ca});
  if (!context) return context.error();
  for (net::Endpoint& endpoint : *endpoints) {
    endpoint.host = address->host;
    endpoint.tls = *context;
  }
  return endpoints;
}

// As many as there are descriptors for: each may need one for its forward.
std::size_t connections_max() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 256;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_NOFILE, &files);
  const std::size_t usable = files.rlim_cur > 256 ? (files.rlim_cur - 128) / 2 : 64;
  return std::min(usable, limits::kGateConnectionsMax);
}

Result<ProxySettings> settings_of(const GateOptions& options) {
  ProxySettings settings;
  settings.mode = options.mode;
  settings.allow_missing = options.allow_missing;
  settings.pass_unmatched = options.pass_unmatched;
  for (const std::string& text : options.resources) {
    auto pattern = ResourcePattern::parse(text);
    if (!pattern) return Error{Code::kInvalid, "--resource: " + pattern.error().detail};
    settings.resources.push_back(std::move(*pattern));
  }
  settings.fence.enforce = options.mode == GuardMode::kEnforce;
  settings.fence.drain_wait = options.drain_wait;
  settings.fence.waiting_max = limits::kGateWaitingMax;
  settings.resources_max = limits::kGateResourcesMax;
  settings.connections_max = connections_max();
  if (options.tls.configured()) {
    auto tls = tls::ServerContext::load(options.tls);
    if (!tls) return tls.error();
    settings.tls = std::move(*tls);
  }
  auto endpoints = find_upstream(options);
  if (!endpoints) return endpoints.error();
  settings.upstream = {std::move(*endpoints), options.upstream_timeout};
  return settings;
}

// --- Listening -----------------------------------------------------------------------------------

Result<server::Listener> listen_at(const char* option, const std::string& text) {
  const auto address = server::parse_listen_address(text);
  if (!address) return Error{Code::kInvalid, fmt::format("{}: {}", option, address.error().detail)};
  return server::listen_on(*address);
}

// The address of the socket in a directory, whose path may be longer than a socket's may be.
struct LocalAddress {
  UniqueFd directory;
  sockaddr_un address{};
};

Result<LocalAddress> local_address(const std::string& state) {
  LocalAddress local;
  local.directory = UniqueFd(::open(state.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!local.directory) return failed("open", state);
  local.address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", local.directory.get(), kSocketName);
  path.copy(local.address.sun_path, sizeof local.address.sun_path - 1);
  return local;
}

Result<UniqueFd> listen_locally(const std::string& state) {
  const auto local = local_address(state);
  if (!local) return local.error();
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return failed("make a socket in", state);
  // The directory is locked, so a socket in it is left from a gate that has ended.
  ::unlinkat(local->directory.get(), std::string(kSocketName).c_str(), 0);
  const auto* address = reinterpret_cast<const sockaddr*>(&local->address);
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(socket.get(), address, sizeof local->address);
  ::umask(mask);
  if (bound != 0 || ::listen(socket.get(), 16) != 0) return failed("listen in", state);
  return socket;
}

// --- Asking --------------------------------------------------------------------------------------

Result<std::string> send_and_receive(const std::string& state, const std::string& request) {
  const auto none = [&](std::string_view why) {
    return Error{Code::kUnavailable,
                 fmt::format("no gate answers in {}: {}; is it the --state of a running gate, and "
                             "are you its user?",
                             state, why)};
  };
  const auto local = local_address(state);
  if (!local) return none(local.error().detail);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const auto* address = reinterpret_cast<const sockaddr*>(&local->address);
  if (::connect(socket.get(), address, sizeof local->address) != 0)
    return none(std::strerror(errno));
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return none("it does not listen");
  std::string answer;
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (got < 0) return none(std::strerror(errno));
    if (got == 0) break;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  return answer;
}

// One request with an optional JSON body; the body of the answer.
Result<std::string> ask(const std::string& state, std::string_view first_line,
                        const std::string& body) {
  auto answer = send_and_receive(
      state, head_text(first_line, {{"Host", "gate"},
                                    {"Connection", "close"},
                                    {"Content-Length", fmt::format("{}", body.size())}}) +
                 body);
  if (!answer) return answer.error();
  const auto end = head_end(*answer);
  const auto head =
      end ? parse_response(std::string_view(*answer).substr(0, *end), false)
          : Result<ResponseHead>(Error{Code::kUnknown, "the gate's answer is not complete"});
  if (!head) return head.error();
  std::string text = answer->substr(*end);
  if (head->status == 200) return text;
  json::error_code error;
  const json::value problem = json::parse(text, error);
  const auto* detail =
      error || !problem.is_object() ? nullptr : problem.get_object().if_contains("detail");
  return Error{Code::kInvalid, detail != nullptr && detail->is_string()
                                   ? std::string(detail->get_string())
                                   : fmt::format("the gate answers {}", head->status)};
}

}  // namespace

Result<void> serve(const GateOptions& options, Log& log, int stop_fd,
                   const std::function<void(const std::string& address)>& on_ready) {
  auto settings = settings_of(options);
  if (!settings) return settings.error();
  store::PosixFiles files;
  auto marks =
      MarkFile::open(files, options.state,
                     options.must_exist ? MarkFile::Missing::kRefuse : MarkFile::Missing::kCreate);
  if (!marks) {
    if (marks.error().code != Code::kBusy) return marks.error();
    return Error{Code::kBusy,
                 fmt::format("{}; two gates in front of one service would let old tokens through. "
                             "Stop that one first, or use another --state for another service",
                             marks.error().detail)};
  }
  Proxy proxy(std::move(*settings), **marks, log);
  auto listener = listen_at("--listen", options.listen);
  if (!listener) return listener.error();
  auto local = listen_locally(options.state);
  if (!local) return local.error();
  proxy.listen(std::move(*local), ClientConnection::Door::kLocalAdmin);
  if (!options.admin.empty()) {
    auto admin = listen_at("--admin", options.admin);
    if (!admin) return admin.error();
    log.info(fmt::format("metrics at http://{}/metrics", admin->address),
             {{"event", "admin"}, {"address", admin->address}});
    proxy.listen(std::move(admin->socket), ClientConnection::Door::kAdmin);
  }
  proxy.listen(std::move(listener->socket), ClientConnection::Door::kPublic);
  on_ready(listener->address);
  return proxy.run(stop_fd);
}

Result<std::string> ask_status(const std::string& state) {
  return ask(state, "GET /v1/status HTTP/1.1", "");
}

Result<std::uint64_t> ask_to_settle(const std::string& state, const std::string& resource) {
  const auto answer =
      ask(state, "POST /v1/settle HTTP/1.1", json::serialize(json::object{{"resource", resource}}));
  if (!answer) return answer.error();
  json::error_code error;
  const json::value parsed = json::parse(*answer, error);
  const auto* object = error ? nullptr : parsed.if_object();
  const auto* settled = object == nullptr ? nullptr : object->if_contains("settled");
  if (settled == nullptr) return Error{Code::kUnknown, "the gate's answer cannot be read"};
  return settled->to_number<std::uint64_t>();
}

}  // namespace pawl::gate

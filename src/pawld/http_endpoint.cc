#include "pawld/http_endpoint.h"

#include "server/listener.h"

namespace pawl::pawld {

HttpEndpoint::HttpEndpoint(Log& log, const Config& config, const ConnectionLimits& limits)
    : config_(config),
      server_(log,
              [this](std::shared_ptr<http::Exchange> exchange) {
                service_.handle(std::move(exchange));
              },
              {.connections = limits.http,
               .reserved = limits.http_reserved,
               .newcomers = limits.http_newcomers}),
      service_(mailbox_, {.hosts = config.http_hosts,
                          .data = config.store == StoreKind::kJournal ? config.data : "",
                          .ttl_max = config.max_ttl,
                          .users = !config.auth_file.empty(),
                          .usage = [this] { return server_.usage(); }}) {
  mailbox_.wake_client_with([this] { server_.post([this] { service_.take_deliveries(); }); });
}

Result<std::string> HttpEndpoint::start(server::Loop& loop, BusyRetry& retry) {
  const auto address = server::parse_listen_address(config_.http);
  if (!address) return address.error();
  auto listener = retry.run<server::Listener>([&] { return server::listen_on(*address); });
  if (!listener) {
    return Error{Code::kInvalid, listener.error().detail +
                                     ". Choose another address with --http (or --http off), or "
                                     "stop the process that uses it"};
  }
  const std::string bound = listener->address;
  loop.attach(mailbox_);
  if (auto started = server_.start(std::move(listener->socket)); !started) return started.error();
  return bound;
}

}  // namespace pawl::pawld

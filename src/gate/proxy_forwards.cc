// The forwards of a proxy: requests on their way to the upstream, and their answers.
#include <fmt/format.h>

#include <utility>

#include "gate/limits.h"
#include "gate/proxy.h"
#include "gate/token_headers.h"

namespace pawl::gate {

using http::Problem;
using http::Retry;

namespace {

std::string_view to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAnswered:
      return "answered";
    case Outcome::kNotSent:
      return "not_sent";
    case Outcome::kUnknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace

void Proxy::start_forward(ClientConnection& client) {
  Plan& plan = plans_.at(client.id());
  const RequestHead& head = client.head();
  ForwardRequest request;
  request.is_head = head.method == "HEAD";
  Headers headers = end_to_end(head.headers);
  headers.push_back({"X-Forwarded-For", client.peer().substr(0, client.peer().rfind(':'))});
  headers.push_back({"Connection", "close"});
  const std::string body = client.take_body();
  if (client.body_done()) {
    if (!body.empty() || !is_read(head.method))
      headers.push_back({"Content-Length", fmt::format("{}", body.size())});
  } else {
    request.rest = head.body;
    if (head.body.type == Framing::Type::kLength) {
      headers.push_back({"Content-Length", fmt::format("{}", head.body.length)});
    } else {
      headers.push_back({"Transfer-Encoding", "chunked"});
    }
  }
  request.bytes = head_text(fmt::format("{} {} HTTP/1.1", head.method, head.target), headers);
  request.bytes += request.rest.type == Framing::Type::kChunked ? chunk_text(body) : body;
  auto& forward = forwards_[plan.request];
  forward = std::make_unique<Forward>(plan.request, std::move(request), settings_.upstream, poller_,
                                      *this);
  forward->client = &client;
  forward->fence = plan.fence;
  plan.forward = forward.get();
  forward->start();
}

void Proxy::on_body(ClientConnection& client) {
  if (Forward* forward = plans_.at(client.id()).forward) pump_body(client, *forward);
}

void Proxy::on_forward_room(Forward& forward) {
  if (forward.client != nullptr) pump_body(*forward.client, forward);
}

void Proxy::pump_body(ClientConnection& client, Forward& forward) {
  if (forward.has_request() || forward.is_full()) return;
  if (client.body().empty() && !client.body_done()) return;
  const std::string body = client.take_body();
  forward.send_body(body, client.body_done());
}

void Proxy::on_room(ClientConnection& client) {
  if (Forward* forward = plans_.at(client.id()).forward) forward->resume();
}

// The client has left. Its forward goes on until it is known how it ended.
void Proxy::detach(Forward& forward) {
  forward.client = nullptr;
  if (!forward.has_request()) return forward.abort("the client left in the middle of its request");
  if (forward.fence == nullptr) return forward.abort("the client left");
  forward.resume();
}

void Proxy::on_answer_head(Forward& forward, const ResponseHead& head) {
  ClientConnection* client = forward.client;
  if (client == nullptr) return;
  Headers headers = end_to_end(head.headers);
  std::erase_if(headers,
                [](const http::Header& each) { return http::same_word(each.name, kMaxHeader); });
  if (forward.fence != nullptr) headers.push_back(max_header(forward.fence->fence.max()));
  Framing body = head.body;
  if (body.type == Framing::Type::kUntilClose) body = {Framing::Type::kChunked, 0};
  if (body.type == Framing::Type::kNone) {
    // An answer to HEAD keeps the length that GET would have.
    const auto length = only_value(head.headers, "Content-Length");
    const bool empty = client->head().method != "HEAD" && head.status != 204 && head.status != 304;
    if (empty) {
      body = {Framing::Type::kLength, 0};
    } else if (length && head.status != 204) {
      headers.push_back({"Content-Length", std::string(*length)});
    }
  }
  client->begin(head.status, head.reason, std::move(headers), body);
}

void Proxy::on_answer_body(Forward& forward, std::string_view payload) {
  if (forward.client == nullptr) return;
  forward.client->send(payload);
  // send() may have found that the client is gone.
  if (forward.client != nullptr && forward.client->is_full()) forward.pause();
}

void Proxy::on_late(Forward& forward) {
  ClientConnection* client = forward.client;
  if (forward.fence == nullptr || late_ >= limits::kGateLateMax)
    return forward.abort("the upstream has not answered");
  forward.is_late = true;
  ++late_;
  forward.fence->fence.timed_out(forward.id());
  forward.client = nullptr;
  forward.wait_until(poller_.now() + limits::kGateLateWait);
  if (client == nullptr) return;
  requests_.erase(forward.id());
  plans_.at(client->id()).forward = nullptr;
  plans_.at(client->id()).fence = nullptr;
  if (client->has_begun()) return client->cut();
  client->respond(Problem{.status = 504,
                          .code = "upstream_late",
                          .title = "the upstream has not answered in time",
                          .detail =
                              "the request may have had an effect, or still have one: ask the "
                              "service before you act. Greater tokens wait until it is known",
                          .headers = {max_header(forward.fence->fence.max())}});
}

void Proxy::on_end(Forward& forward, Outcome outcome, const std::string& why) {
  ++counts_.outcomes[std::string(to_text(outcome))];
  if (forward.is_late) --late_;
  NamedFence* fence = forward.fence;
  ClientConnection* client = forward.client;
  const RequestId request = forward.id();
  requests_.erase(request);
  const auto self = forwards_.find(request);
  ended_forwards_.push_back(std::move(self->second));
  forwards_.erase(self);
  if (client != nullptr) plans_.at(client->id()) = Plan{};

  const bool in_flight = fence != nullptr && fence->fence.has(request);
  if (outcome == Outcome::kUnknown && in_flight) {
    fence->fence.lost(request);
    log_.warning(
        fmt::format("{}: a forward may or may not have had an effect: {}", fence->name, why),
        {{"event", "outcome_unknown"}, {"resource", fence->name}});
  }
  if (client != nullptr) {
    const bool known = outcome == Outcome::kNotSent || !in_flight;
    if (outcome == Outcome::kAnswered) {
      client->end();
    } else if (client->has_begun()) {
      client->cut();
    } else {
      client->respond(Problem{
          .status = 502,
          .code = known ? "upstream_unreachable" : "outcome_unknown",
          .title =
              known ? "the upstream cannot be reached" : "the connection to the upstream broke",
          .detail =
              known ? fmt::format("{}; {}", why,
                                  outcome == Outcome::kNotSent ? "nothing was sent" : "try again")
                    : fmt::format("{}: the request may have had an effect, or still have one. "
                                  "Greater tokens wait until an operator settles it",
                                  why),
          .retry = known ? Retry::kLater : Retry::kNever});
    }
  }
  // Last: others may be forwarded now.
  if (fence == nullptr) return;
  if (outcome != Outcome::kUnknown) fence->fence.answered(request, poller_.now(), actions_);
  act(*fence);
}

}  // namespace pawl::gate

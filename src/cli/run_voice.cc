#include "cli/run_voice.h"

#include <poll.h>
#include <unistd.h>

#include <string>

#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

// A pipe that polls as writable takes PIPE_BUF bytes without waiting, which is more than any line
// here.
void write_at_once(int fd, const std::string& line) {
  pollfd ready{fd, POLLOUT, 0};
  if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  (void)!write(fd, line.data(), line.size());
}

}  // namespace

void RunVoice::say(std::string_view line) const {
  write_at_once(STDERR_FILENO, "pawl: " + std::string(line) + "\n");
}

Json RunVoice::begin(std::string_view event) {
  Json json;
  json.object().key("event").string(event);
  json.key("boottime_ns").number(client::boot_now().time_since_epoch().count());
  return json;
}

void RunVoice::report(Json& json) const {
  json.end();
  if (report_fd_ >= 0) write_at_once(report_fd_, json.text() + "\n");
}

void RunVoice::acquired(const client::Held& held) const {
  Json json = begin("acquired");
  json.key("token").number(static_cast<std::int64_t>(held.token.value));
  json.key("floor").number(static_cast<std::int64_t>(held.floor.value)).key("slot");
  held.slot ? json.number(*held.slot) : json.null();
  json.key("ttl_ms").number(held.ttl.count()).key("waited_ms").number(held.waited.count());
  report(json);
}

void RunVoice::started(int pid) const {
  Json json = begin("started");
  json.key("pid").number(pid);
  report(json);
}

void RunVoice::renewed(Millis expires_in) const {
  Json json = begin("renewed");
  json.key("expires_in_ms").number(expires_in.count());
  report(json);
}

void RunVoice::lost(std::string_view reason) const {
  Json json = begin("lost");
  json.key("reason").string(reason);
  report(json);
}

void RunVoice::released(bool confirmed) const {
  Json json = begin("released");
  json.key("confirmed").boolean(confirmed);
  report(json);
}

void RunVoice::exits(int code) const {
  Json json = begin("exit");
  json.key("code").number(code);
  report(json);
}

}  // namespace pawl::cli

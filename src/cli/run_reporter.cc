#include "cli/run_reporter.h"

#include <poll.h>
#include <unistd.h>

#include <string>

#include "client/boot_clock.h"

namespace pawl::cli {
namespace {

// A pipe that polls as writable takes PIPE_BUF bytes without blocking, more than any line here.
void write_at_once(int fd, const std::string& line) {
  pollfd ready{fd, POLLOUT, 0};
  if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  (void)!::write(fd, line.data(), line.size());
}

}  // namespace

void RunReporter::message(std::string_view line) const {
  write_at_once(STDERR_FILENO, "pawl: " + std::string(line) + "\n");
}

Json RunReporter::event(std::string_view name) {
  Json json;
  json.object().key("event").string(name);
  json.key("boottime_ns").number(client::boot_now().time_since_epoch().count());
  return json;
}

void RunReporter::report(Json& json) const {
  json.end();
  if (report_fd_ >= 0) write_at_once(report_fd_, json.text() + "\n");
}

void RunReporter::acquired(const client::GrantedLease& granted) const {
  Json json = event("acquired");
  json.key("token").number(static_cast<std::int64_t>(granted.token.value));
  json.key("floor").number(static_cast<std::int64_t>(granted.floor.value)).key("slot");
  granted.slot ? json.number(*granted.slot) : json.null();
  json.key("ttl_ms").number(granted.ttl.count()).key("waited_ms").number(granted.waited.count());
  report(json);
}

void RunReporter::started(int pid, std::string_view stopped_by) const {
  Json json = event("started");
  json.key("pid").number(pid).key("stopped_by").string(stopped_by);
  report(json);
}

void RunReporter::renewed(Millis expires_in) const {
  Json json = event("renewed");
  json.key("expires_in_ms").number(expires_in.count());
  report(json);
}

void RunReporter::release_wanted(const wire::ReleaseWanted& wanted) const {
  Json json = event("release_wanted");
  json.key("lock").string(wanted.lock).key("by").string(wanted.by);
  json.key("reason").string(wanted.reason);
  report(json);
}

void RunReporter::stopped(int signal) const {
  Json json = event("stopped");
  json.key("signal").number(signal);
  report(json);
}

void RunReporter::continued() const {
  Json json = event("continued");
  report(json);
}

void RunReporter::lost(std::string_view reason) const {
  Json json = event("lost");
  json.key("reason").string(reason);
  report(json);
}

void RunReporter::released(bool confirmed) const {
  Json json = event("released");
  json.key("confirmed").boolean(confirmed);
  report(json);
}

void RunReporter::exited(int code) const {
  Json json = event("exit");
  json.key("code").number(code);
  report(json);
}

}  // namespace pawl::cli

#include "cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "base/text.h"
#include "cli/exit_codes.h"

namespace pawl::cli {
namespace {

constexpr const char* kTlsHint =
    "PAWL_TLS_CA: CA certificates used to verify pawld. PAWL_TLS_CERT, PAWL_TLS_KEY: your client "
    "certificate.";

constexpr const char* kUnreachableHint =
    "Is pawld running? Start it with `systemctl start pawld`, `pawld` or `make run`, or name "
    "another with --addr or PAWL_ADDR.";
constexpr const char* kOtherServerHint =
    "Another server listens there, or this is pawld's port for HTTP. Name its port for RESP (7295 "
    "by default) with --addr or PAWL_ADDR.";

// The error of libpawl for a port that speaks TLS, with the option of the command line; nullopt for
// other errors.
std::optional<std::string> tls_advice(const std::string& detail) {
  const std::size_t at = detail.find(client::kSpeaksTls);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t behind = at + client::kSpeaksTls.size();
  return fmt::format("{}--addr {}\n{}", detail.substr(0, behind), detail.substr(behind), kTlsHint);
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(STDOUT_FILENO) == 1;
}

const char* escape(Paint paint) {
  switch (paint) {
    case Paint::kGood:
      return "\033[32m";
    case Paint::kWarn:
      return "\033[33m";
    case Paint::kBad:
      return "\033[31m";
    case Paint::kDim:
      return "\033[2m";
    case Paint::kStrong:
      return "\033[1m";
  }
  return "";
}

// What to do when the credentials are wrong.
const char* auth_hint(std::string_view detail) {
  if (detail.starts_with("NOAUTH"))
    return "\nSet PAWL_AUTH=user:secret, or use --auth-file with a file that contains user:secret.";
  if (detail.starts_with("WRONGPASS"))
    return "\nCheck PAWL_AUTH, or the file that --auth-file names; `pawl auth ls` shows the users "
           "of a file.";
  return "";
}

}  // namespace

Console::Console(Settings settings) : settings_(std::move(settings)), colour_(wants_colour()) {}

bool Console::interactive() const {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

client::BlockingConnection& Console::pawld() {
  if (!pawld_) {
    client::ConnectionOptions options;
    options.machine.name = "pawl-cli";
    if (timeout_) options.machine.answer_timeout = options.call_timeout = *timeout_;
    options.machine.auth = settings_.auth;
    options.on_queued = [this](std::uint64_t position) { report_queued(position); };
    options.on_connection_error = [this](const std::string& why) {
      progress(printable(why) + "; retrying");
    };
    pawld_.emplace(settings_.addresses, random_, std::move(options));
  }
  return *pawld_;
}

Result<wire::Value> Console::ask(std::vector<std::string> words,
                                 client::CommandCall::Repeat repeat) {
  return pawld().command({.words = std::move(words), .repeat = repeat});
}

bool Console::data(std::string_view text) {
  clear_progress();
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return std::fflush(stdout) == 0 && written;
}

void Console::clear_progress() {
  if (std::exchange(progress_shown_, false)) std::fputs("\r\033[K", stderr);
}

void Console::note(std::string_view line) {
  clear_progress();
  std::fputs(fmt::format("{}\n", line).c_str(), stderr);
}

void Console::progress(std::string_view line) {
  if (isatty(STDERR_FILENO) != 1) return;
  clear_progress();
  progress_shown_ = true;
  std::fputs(std::string(line).c_str(), stderr);
}

// A terminal shows the last state; elsewhere, such as in the log of a job, one line says why nothing
// happens.
void Console::report_queued(std::uint64_t position) {
  const std::string line = fmt::format("position {} in the queue", position);
  if (isatty(STDERR_FILENO) == 1) return progress("waiting: " + line);
  if (waits_for_.empty()) return;
  note(fmt::format("pawl: waiting for {}: {}; `pawl show` names the holder",
                   std::exchange(waits_for_, {}), line));
}

// Also a plain client at a port that speaks TLS.
bool Console::is_tls_mismatch(const Error& error) const {
  return error.code == Code::kUnavailable &&
         ((pawld_ && pawld_->is_tls_mismatch()) || tls_advice(error.detail));
}

int Console::fail(const Error& error) {
  return fail(error, is_tls_mismatch(error) ? kExitConfiguration : exit_code(error.code));
}

void Console::report(const Error& error) {
  if (!json()) return;
  Json json;
  json.object().key("error").object();
  json.key("code").string(to_text(error.code)).key("detail").string(error.detail);
  json.end().end();
  data(json);
}

int Console::fail_usage(std::string_view where, std::string_view what) {
  report({Code::kInvalid, fmt::format("{}: {}", where, what)});
  note(fmt::format("{}: {}\nTry `{} --help`.", where, what, where));
  return kExitUsage;
}

int Console::fail(const Error& error, int exit_code) {
  report(error);
  note("pawl: " + explain(error));
  return exit_code;
}

int Console::fail_plainly(const Error& error, int exit_code) {
  report(error);
  note("pawl: " + printable(error.detail));
  return exit_code;
}

int Console::fail_unreachable(const std::string& why) {
  // explain() adds the advice.
  if (tls_advice(why) || why.find(client::kNotPawld) != std::string::npos)
    return fail({Code::kUnavailable, why});
  const int code = fail({Code::kUnavailable, "pawld unreachable at " + why});
  note(kUnreachableHint);
  return code;
}

int Console::fail_tls_mismatch(const std::string& why) {
  const int code =
      fail({Code::kUnavailable, "TLS with pawld failed at " + why}, kExitConfiguration);
  note(kTlsHint);
  return code;
}

std::string Console::explain(const Error& error) const {
  const std::string detail = printable(error.detail);
  const bool reached = pawld_ && pawld_->reached();
  switch (error.code) {
    case Code::kUnavailable:
      if (const auto advice = tls_advice(detail)) return *advice;
      if (detail.find(client::kNotPawld) != std::string::npos)
        return fmt::format("{}.\n{}", detail, kOtherServerHint);
      if (reached || !pawld_) return detail;
      if (is_tls_mismatch(error))
        return fmt::format("TLS with pawld failed at {}.\n{}", detail, kTlsHint);
      return fmt::format("pawld unreachable at {}.\n{}", detail, kUnreachableHint);
    case Code::kUnknown:
      return fmt::format(
          "no confirmation from pawld at {}: {}.\nThe command may have taken effect; check with "
          "`pawl show` first.",
          addresses(), detail);
    case Code::kLeaseLost:
      return fmt::format("the lease is over ({}). Stop the work it covered, and acquire again.",
                         detail);
    case Code::kDenied:
      return fmt::format("not permitted: {}{}", detail, auth_hint(detail));
    case Code::kBusy:
    case Code::kStaleToken:
    case Code::kInvalid:
    case Code::kIssuerBehind:
      break;
  }
  return detail;
}

std::string Console::addresses() const {
  std::string list;
  for (const client::Address& address : settings_.addresses) {
    list += (list.empty() ? "" : ",") + client::to_text(address);
  }
  return list;
}

std::string Console::paint(Paint paint, std::string_view text) const {
  return colour_ ? fmt::format("{}{}\033[0m", escape(paint), text) : std::string(text);
}

Result<bool> confirm(Console& console, std::string_view warning, std::string_view question) {
  if (!console.interactive()) {
    std::string line(warning);
    std::replace(line.begin(), line.end(), '\n', ' ');  // An error is one line.
    return Error{Code::kInvalid,
                 fmt::format("without a terminal to confirm on, --yes is needed: {}", line)};
  }
  console.note(warning);
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace pawl::cli

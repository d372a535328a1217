// The input and output of a verb: pawld on one side, a person or a program on the other.
//
// stdout is data, stderr is for people. With --json every outcome, failures included, is one JSON
// document on stdout.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "cli/json.h"
#include "client/address.h"
#include "client/blocking_connection.h"
#include "pawl/result.h"
#include "pawl/types.h"

namespace pawl::cli {

enum class Paint { kGood, kWarn, kBad, kDim, kStrong };

class Console {
 public:
  struct Settings {
    bool json = false;
    std::vector<client::Address> addresses;
    Auth auth;
    bool address_given = false;  // by --addr
    std::string auth_file;       // --auth-file; empty: PAWL_AUTH
  };
  explicit Console(Settings settings);
  ~Console() { clear_progress(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  [[nodiscard]] bool json() const { return settings_.json; }
  // Whether stdin and stderr are a terminal, so that a question can be asked.
  [[nodiscard]] bool interactive() const;

  // Whether --addr was given; else the address is PAWL_ADDR or the default.
  [[nodiscard]] bool address_given() const { return settings_.address_given; }
  // The credentials for pawld.
  [[nodiscard]] const Auth& auth() const { return settings_.auth; }
  [[nodiscard]] const std::string& auth_file() const { return settings_.auth_file; }
  // The addresses of pawld, also as text.
  [[nodiscard]] const std::vector<client::Address>& targets() const { return settings_.addresses; }
  [[nodiscard]] std::string addresses() const;

  // For commands that take pawld longer than usual. Before the first use of the connection.
  void set_timeout(Millis timeout) { timeout_ = timeout; }
  // The connection, which is made when it is first used.
  client::BlockingConnection& pawld();
  // One command, its reply.
  Result<wire::Value> ask(
      std::vector<std::string> words,
      client::CommandCall::Repeat repeat = client::CommandCall::Repeat::kHarmless);

  // To stdout, flushed; false when it could not be written.
  bool data(std::string_view text);
  bool data(const Json& json) { return data(json.text() + "\n"); }
  // A line to stderr.
  void note(std::string_view line);
  // A line that the next output replaces; only on a terminal.
  void progress(std::string_view line);
  // What acquire() on pawld() waits for. Where stderr is no terminal, one line says so.
  void set_waits_for(std::string locks) { waits_for_ = std::move(locks); }
  // Removes it.
  void end_progress() { clear_progress(); }
  // Prints what went wrong and what to do next, and returns the exit code for scripts.
  int fail(const Error& error);
  int fail(const Error& error, int exit_code);
  // The same without advice: the detail says all.
  int fail_plainly(const Error& error, int exit_code);
  // The same for a wrong command line: `where` is the command, such as `pawl guard install`.
  int fail_usage(std::string_view where, std::string_view what);
  // No pawld has answered, on a connection other than pawld().
  int fail_unreachable(const std::string& why);
  // The same, because TLS does not match on both ends.
  int fail_tls_mismatch(const std::string& why);

  // Coloured when stdout is a terminal and NO_COLOR is not set.
  [[nodiscard]] std::string paint(Paint paint, std::string_view text) const;

 private:
  void clear_progress();
  void report_queued(std::uint64_t position);
  // With --json: the error as a document.
  void report(const Error& error);
  [[nodiscard]] bool is_tls_mismatch(const Error& error) const;
  [[nodiscard]] std::string explain(const Error& error) const;

  const Settings settings_;
  const bool colour_;
  bool progress_shown_ = false;
  std::string waits_for_;  // empty: nothing to say about it
  std::optional<Millis> timeout_;
  SystemRandom random_;
  std::optional<client::BlockingConnection> pawld_;
};

// Asks before something that cannot be undone. Whether to continue; without a terminal an error
// that names --yes, with `warning` as the reason.
[[nodiscard]] Result<bool> confirm(Console& console, std::string_view warning,
                                   std::string_view question);

}  // namespace pawl::cli

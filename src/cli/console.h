// Where a verb reads and writes: pawld on one side, a person or a program on the other.
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

enum class Paint { kGood, kBad, kDim, kStrong };

class Console {
 public:
  struct Settings {
    bool json = false;
    std::vector<client::Address> addresses;
    Auth auth;
    bool address_given = false;  // by --addr
  };
  explicit Console(Settings settings);
  ~Console() { clear_progress(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  [[nodiscard]] bool json() const { return settings_.json; }
  // stdin and stderr are a terminal: someone can be asked.
  [[nodiscard]] bool interactive() const;

  // Whether --addr was given; else the address is PAWL_ADDR or the default.
  [[nodiscard]] bool address_given() const { return settings_.address_given; }
  // Who we are to pawld.
  [[nodiscard]] const Auth& auth() const { return settings_.auth; }
  // Where pawld is said to listen; and the same as people write it.
  [[nodiscard]] const std::vector<client::Address>& targets() const { return settings_.addresses; }
  [[nodiscard]] std::string addresses() const;

  // For what pawld may work on longer than any answer takes. Before the first use of the
  // connection.
  void be_patient(Millis patience) { patience_ = patience; }
  // The connection, made when first used.
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
  // A line that the next output replaces; only where someone is looking.
  void progress(std::string_view line);
  // Takes it away.
  void end_progress() { clear_progress(); }
  // Says what went wrong and what to do next, and returns the exit code that tells it to scripts.
  int fail(const Error& error);
  int fail(const Error& error, int exit_code);
  // No pawld has answered, on a connection that is not pawld()'s.
  int fail_unreachable(const std::string& why);
  // None could, because TLS does not fit on both ends.
  int fail_misfit(const std::string& why);

  // Coloured when stdout is a terminal and NO_COLOR is not set.
  [[nodiscard]] std::string paint(Paint paint, std::string_view text) const;

 private:
  void clear_progress();
  [[nodiscard]] bool is_misfit(const Error& error) const;
  [[nodiscard]] std::string explain(const Error& error) const;

  const Settings settings_;
  const bool colour_;
  bool progress_shown_ = false;
  std::optional<Millis> patience_;
  SystemRandom random_;
  std::optional<client::BlockingConnection> pawld_;
};

}  // namespace pawl::cli

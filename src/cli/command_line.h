// The command line. Each verb declares its options here; parsing, --help, the manual pages and the
// shell completions come from that declaration. A thin layer over CLI11, which is slow to compile:
// only command_line.cc, completion.cc and manual.cc include it.
//
//   auto options = std::make_shared<Options>();
//   Verb show = line.verb("show", "who holds a lock", Talks::kToPawld);
//   show.required("LOCK", options->lock, "its name");
//   show.run([options](Console& console) { return show(console, *options); });
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "cli/console.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pawl::cli {

class CommandLine;

// Names are CLI11's: "-t,--ttl". The variables must live until the verb has run.
class Verb {
 public:
  void required(const char* name, std::string& into, const char* help);
  void optional(const char* name, std::string& into, const char* help);
  // Any number of them.
  void words(const char* name, std::vector<std::string>& into, const char* help);
  // One of `words`, nothing else.
  void choice(const char* name, std::string& into, const std::vector<std::string>& words,
              const char* help);
  void optional_choice(const char* name, std::string& into, const std::vector<std::string>& words,
                       const char* help);
  void flag(const char* names, bool& into, const char* help);
  // Not listed in --help: for pawl itself.
  void hidden_flag(const char* name, bool& into);
  void text(const char* names, const char* shown, std::string& into, const char* help);
  void texts(const char* names, const char* shown, std::vector<std::string>& into,
             const char* help);
  void number(const char* names, std::uint64_t& into, const char* help);
  void duration(const char* names, Millis& into, const char* help);
  // Everything after a lone `--`, unparsed.
  void rest(std::vector<std::string>& into);
  void must_have(const char* name);
  void not_both(const char* name, const char* other);
  void examples(const char* text);
  // Not listed in --help: for the build.
  void hide();
  // The action, once everything is parsed. Returns the exit code.
  void run(std::function<int(Console&)> action);

 private:
  friend class CommandLine;
  Verb(CommandLine& line, CLI::App& app) : line_(line), app_(app) {}

  CommandLine& line_;
  CLI::App& app_;
};

enum class Talks : std::uint8_t { kToPawld, kToNobody };

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();

  Verb verb(const char* name, const char* help, Talks talks);
  // A verb of two words, such as `guard install`; `group` has been declared by group().
  Verb verb(const char* group, const char* name, const char* help, Talks talks);
  void group(const char* name, const char* help, const char* footer);
  // Parses and runs. Returns the exit code.
  int main(int argc, char** argv);

  // The declaration itself, for completions and manual pages.
  [[nodiscard]] const CLI::App& app() const { return *app_; }
  // What `pawl VERB --help` prints; of `pawl` itself when there is no verb.
  [[nodiscard]] Result<std::string> help_of(const std::vector<std::string>& verbs) const;
  // Whether a command of the user's follows `--`.
  [[nodiscard]] bool takes_command(const std::string& verb) const { return rests_.contains(verb); }

 private:
  friend class Verb;
  // Whether --json is among the words, parsed or not. Not behind `--`: those belong to the command.
  [[nodiscard]] static bool wants_json(const std::vector<std::string>& words);
  [[nodiscard]] int usage_error(Console& console, const std::string& what) const;
  // What is wrong with words that no command takes; nullopt when every word was taken.
  [[nodiscard]] std::optional<std::string> describe_extras(
      const std::vector<std::string>& words) const;
  // The same for a word in the place of a verb; nullopt when there is none.
  [[nodiscard]] std::optional<std::string> unknown_verb() const;
  // The innermost command that was parsed: `pawl`, `pawl guard`, `pawl guard install`.
  [[nodiscard]] const CLI::App& named() const;
  // Connects nothing yet. The error is a usage error (64) or one of the environment (78).
  [[nodiscard]] Result<Console::Settings> settings(bool json, int& exit_code) const;
  // Removes what follows `--`, when the verb takes it. Returns the number of words that are left.
  [[nodiscard]] int split_rest(int argc, char** argv) const;

  std::unique_ptr<CLI::App> app_;
  std::string addresses_;  // --addr
  std::string auth_file_;  // --auth-file
  bool json_ = false;
  std::map<std::string, std::vector<std::string>*> rests_;  // by verb
  std::function<int(Console&)> action_;                     // of the verb that was named
  Talks talks_ = Talks::kToNobody;
};

}  // namespace pawl::cli

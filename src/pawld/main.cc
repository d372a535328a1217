// pawld: the daemon. Wiring only.
#include <fmt/format.h>

#include <csignal>

#include "base/standard_descriptors.h"
#include "pawld/commands.h"
#include "pawld/exit_codes.h"
#include "pawld/options.h"

namespace {

// Called before any thread exists, so that all inherit it: the loop reads these from a signalfd.
void block_signals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&handled, signal);
  pthread_sigmask(SIG_BLOCK, &handled, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // stderr may be a pipe that is not read any more.
}

}  // namespace

int main(int argc, char** argv) {
  using namespace pawl::pawld;
  pawl::open_standard_descriptors();
  const ParsedOptions parsed = parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  switch (parsed.options->action) {
    case Action::kCheckConfig:
      return check_config(*parsed.options);
    case Action::kPrintConfig:
      fmt::print("{}", to_toml(parsed.options->config));
      return kExitOk;
    case Action::kDump:
      return dump(*parsed.options);
    case Action::kInit:
      return init(*parsed.options);
    case Action::kBackup:
      return backup_etcd(*parsed.options);
    case Action::kVerify:
      return verify(*parsed.options);
    case Action::kRestore:
      return restore(*parsed.options);
    case Action::kServe:
      break;
  }
  block_signals();
  return serve(*parsed.options);
}

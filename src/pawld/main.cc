// pawld: the daemon. Wiring only.
#include <fmt/format.h>

#include <csignal>

#include "pawld/daemon.h"
#include "pawld/exit_codes.h"
#include "pawld/offline.h"
#include "pawld/options.h"

namespace {

// Before any thread exists, so that all of them inherit it: the loop takes these from a signalfd.
void block_signals() {
  sigset_t heeded;
  sigemptyset(&heeded);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&heeded, signal);
  pthread_sigmask(SIG_BLOCK, &heeded, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // stderr may be a pipe whose reader has left.
}

}  // namespace

int main(int argc, char** argv) {
  using namespace pawl::pawld;
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

// pawld: the daemon. Wiring only.
#include <fmt/format.h>

#include <csignal>

#include "pawld/daemon.h"
#include "pawld/exit_codes.h"
#include "pawld/options.h"

namespace {

// Before any thread exists, so that all of them inherit it: the loop takes these from a signalfd.
void block_signals() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // stderr may be a pipe whose reader has left.
}

}  // namespace

int main(int argc, char** argv) {
  using namespace pawl::pawld;
  const ParsedOptions parsed = parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  switch (parsed.options->action) {
    case Action::kCheckConfig:
      fmt::print("the configuration is right\n");
      return kExitOk;
    case Action::kPrintConfig:
      fmt::print("{}", to_toml(parsed.options->config));
      return kExitOk;
    case Action::kDump:
      return dump(*parsed.options);
    case Action::kServe:
      break;
  }
  block_signals();
  return serve(*parsed.options);
}

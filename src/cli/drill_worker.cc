// pawl drill-worker: a worker of a drill, which the drill starts and speaks with. Not for people.
#include <unistd.h>

#include "cli/command_line.h"
#include "cli/verbs.h"
#include "drill/worker.h"

namespace pawl::cli {

void add_drill_worker(CommandLine& line) {
  Verb verb = line.verb("drill-worker", "a worker of a drill, started by it", Talks::kToNobody);
  verb.hide();
  verb.run([](Console&) { return drill::work(STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace pawl::cli

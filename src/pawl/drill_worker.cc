// pawl drill-worker: a worker of a drill, which the drill starts and speaks with. Not for people.
#include <unistd.h>

#include "drill/worker.h"
#include "pawl/command_line.h"
#include "pawl/verbs.h"

namespace pawl::cli {

void add_drill_worker(CommandLine& line) {
  Verb verb = line.verb("drill-worker", "a worker of a drill, started by it", Talks::kToNobody);
  verb.hide();
  verb.run([](Console&) { return drill::work(STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace pawl::cli

// One client of a world, until it is killed: nemesis_worker addr=[tls://]HOST:PORT auth=USER:SECRET
// ca=FILE log=FILE name=c1-3 guard=sqlite:FILE seed=N ttl=MS ahead=NS [under=run]. SIGTERM: it ends
// what it is doing, gives back what it holds, and exits 0.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "nemesis/worker.h"

namespace {

std::atomic<bool> stopping = false;

std::map<std::string, std::string> words(int argc, char** argv) {
  std::map<std::string, std::string> found;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto equals = word.find('=');
    if (equals != std::string_view::npos)
      found.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  auto given = words(argc, argv);
  pawl::nemesis::Settings settings;
  settings.address = given["addr"];
  settings.auth = given["auth"];
  settings.ca_file = given["ca"];
  settings.name = given["name"];
  settings.guard = given["guard"];
  settings.seed = std::strtoull(given["seed"].c_str(), nullptr, 10);
  settings.ttl_ms = std::atoi(given["ttl"].c_str());
  pawl::nemesis::EventLog log(given["log"], std::strtoll(given["ahead"].c_str(), nullptr, 10));
  if (given["under"] == "run") {
    pawl::nemesis::work_under_run(settings, log);
    return 0;
  }
  std::signal(SIGTERM, [](int) { stopping = true; });
  pawl::nemesis::Worker worker(settings, log);
  while (!stopping) worker.turn();
  log.say("stopped", {});
  return 0;
}

// pawl gate: checks tokens in front of an HTTP service that knows nothing of them.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "gate/serve.h"
#include "guard_contract/parse.h"

namespace pawl::cli {
namespace {

struct GateArguments {
  gate::GateOptions options;
  std::string mode = "enforce";
  std::string log_format = "text";
};

int exit_code_of(const Error& error) {
  switch (error.code) {
    case Code::kInvalid:
    case Code::kBusy:
    case Code::kDenied:
      return kExitConfiguration;
    case Code::kUnknown:
      return kExitOutput;
    default:
      return exit_code(error.code);
  }
}

int run_gate(Console& console, GateArguments& arguments) {
  gate::GateOptions& options = arguments.options;
  for (const auto& [value, name] : {std::pair{options.listen.empty(), "--listen"},
                                    {options.upstream.empty(), "--upstream"},
                                    {options.resources.empty(), "--resource"},
                                    {options.state.empty(), "--state"}}) {
    if (value) return console.fail_usage("pawl gate", fmt::format("{} is required", name));
  }
  options.mode = *guard::parse_mode(arguments.mode);
  StopSignals signals;  // Before any thread is started: threads inherit what is blocked.
  const auto log = open_log(arguments.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  const auto on_ready = [&](const std::string& address) {
    log->info(fmt::format("the gate listens on {} in front of {} ({})", address, options.upstream,
                          arguments.mode),
              {{"event", "ready"}, {"address", address}});
  };
  const auto served = gate::serve(options, *log, signals.fd(), on_ready);
  if (signals.take() != 0) log->info("the gate has stopped", {{"event", "stopped"}});
  log->flush();
  if (served) return kExitOk;
  return console.fail_plainly(served.error(), exit_code_of(served.error()));
}

std::string row(const boost::json::object& resource) {
  const auto number = [&](const char* key) { return resource.at(key).to_number<std::uint64_t>(); };
  return fmt::format("{:<40} {:>16} {:>9} {:>8} {:>8}\n",
                     std::string(resource.at("resource").as_string()), number("max"),
                     number("in_flight"), number("unknown"), number("waiting"));
}

int gate_status(Console& console, const std::string& state) {
  const auto answer = gate::ask_status(state);
  if (!answer) return console.fail_plainly(answer.error(), exit_code(answer.error().code));
  if (console.json()) return console.data(*answer) ? kExitOk : kExitOutput;
  const auto status = boost::json::parse(*answer).as_object();
  std::string text = fmt::format("mode {}, {} resources, {} connections\n",
                                 std::string(status.at("mode").as_string()),
                                 status.at("resources_known").to_number<std::uint64_t>(),
                                 status.at("connections").to_number<std::uint64_t>());
  text += fmt::format("{:<40} {:>16} {:>9} {:>8} {:>8}\n", "RESOURCE", "MAX", "IN FLIGHT",
                      "UNKNOWN", "WAITING");
  for (const auto& each : status.at("resources").as_array()) text += row(each.as_object());
  return console.data(text) ? kExitOk : kExitOutput;
}

int gate_settle(Console& console, const std::string& state, const std::string& resource) {
  const auto settled = gate::ask_to_settle(state, resource);
  if (!settled) return console.fail_plainly(settled.error(), exit_code(settled.error().code));
  if (console.json()) {
    Json json;
    json.object()
        .key("resource")
        .string(resource)
        .key("settled")
        .number(static_cast<std::int64_t>(*settled))
        .end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  const std::string text =
      *settled == 0
          ? fmt::format("{}: nothing was unknown\n", resource)
          : fmt::format("{}: {} settled; greater tokens are forwarded now\n", resource, *settled);
  return console.data(text) ? kExitOk : kExitOutput;
}

void add_serve(CommandLine& line) {
  auto arguments = std::make_shared<GateArguments>();
  gate::GateOptions& options = arguments->options;
  Verb verb = line.verb("gate", "check tokens in front of an HTTP service that knows none",
                        Talks::kToNobody);
  verb.text("--listen", "ADDR", options.listen, "where clients connect: host:port");
  verb.text("--upstream", "URL", options.upstream, "the service: http://host:port or https://…");
  verb.text("--tls-cert", "FILE", options.tls.cert, "serve HTTPS with this certificate");
  verb.text("--tls-key", "FILE", options.tls.key, "the key of --tls-cert");
  verb.texts("--resource", "PATTERN", options.resources,
             "what has a fence of its own: path:/accounts/{id} (may be repeated)");
  verb.text("--state", "DIR", options.state, "where the gate keeps its marks; one gate each");
  verb.optional_choice(
      "--mode", arguments->mode, {"observe", "shadow", "enforce"},
      "enforce (default) refuses; shadow counts what it would refuse; observe records");
  verb.duration("--drain-wait", options.drain_wait,
                "how long a greater token waits for lower ones (default 5s)");
  verb.duration("--upstream-timeout", options.upstream_timeout,
                "how long the service may be silent before its outcome counts as unknown "
                "(default 60s)");
  verb.text("--upstream-ca", "FILE", options.upstream_ca,
            "the CA of an https upstream (default: those that the system trusts)");
  verb.flag("--allow-missing", options.allow_missing,
            "writes without a token pass, and are counted");
  verb.flag("--pass-unmatched", options.pass_unmatched,
            "writes that match no --resource pass without a check");
  verb.flag("--must-exist", options.must_exist,
            "refuse to start without the marks of an earlier run");
  verb.text("--admin", "ADDR", options.admin, "serve /metrics, /healthz and /v1/status there");
  verb.optional_choice("--log-format", arguments->log_format, {"text", "json"},
                       "json: one object per line, refusals included");
  verb.examples(
      "  pawl gate --listen 127.0.0.1:8080 --upstream http://127.0.0.1:9000 \\\n"
      "      --resource 'path:/accounts/{id}' --state /var/lib/pawl-gate\n"
      "  pawl run accounts/7 -- sh -c 'curl -X POST -H \"X-Fencing-Token: $PAWL_TOKEN\" \\\n"
      "      -d 5 http://127.0.0.1:8080/accounts/7/deposit'\n"
      "  pawl gate status --state /var/lib/pawl-gate");
  verb.run([arguments](Console& console) { return run_gate(console, *arguments); });
}

}  // namespace

void add_gate(CommandLine& line) {
  add_serve(line);
  auto state = std::make_shared<std::string>();
  auto resource = std::make_shared<std::string>();
  Verb status = line.verb("gate", "status", "show the fences of a running gate", Talks::kToNobody);
  status.text("--state", "DIR", *state, "the gate's state directory");
  status.must_have("--state");
  status.examples("  pawl gate status --state /var/lib/pawl-gate");
  status.run([state](Console& console) { return gate_status(console, *state); });

  Verb settle =
      line.verb("gate", "settle", "say that no unknown forward will have an effect any more",
                Talks::kToNobody);
  settle.required("RESOURCE", *resource, "as `pawl gate status` shows it");
  settle.text("--state", "DIR", *state, "the gate's state directory");
  settle.must_have("--state");
  settle.examples("  pawl gate settle /accounts/7 --state /var/lib/pawl-gate");
  settle.run(
      [state, resource](Console& console) { return gate_settle(console, *state, *resource); });
}

}  // namespace pawl::cli

// Writes to a guarded DynamoDB as lines on stdin say, one answer on stdout for each:
//
//   put|update|delete RESOURCE TABLE ID TOKEN OPERATION STATE
//
// Usage: dynamo_writer DSN
#include <iostream>
#include <sstream>
#include <string>

#include "guard/dynamodb/dsn.h"
#include "pawl/dynamodb.h"

namespace pawl {
namespace {

DynamoChange to_change(const std::string& verb, const std::string& table, const std::string& id,
                       const std::string& state) {
  DynamoItem key{{"id", DynamoValue::text(id)}};
  if (verb == "delete") return DynamoDelete{table, std::move(key)};
  if (verb == "update")
    return DynamoUpdate{.table = table,
                        .key = std::move(key),
                        .update = "SET #s = :s",
                        .names = {{"#s", "state"}},
                        .values = {{":s", DynamoValue::text(state)}}};
  key.emplace("state", DynamoValue::text(state));
  return DynamoPut{table, std::move(key)};
}

int run(int argc, char** argv) {
  if (argc != 2) return 64;
  const auto options = guard::parse_dynamo_dsn(argv[1]);
  if (!options) return 64;
  DynamoGuard guard(*options);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, resource, table, id, state;
    std::uint64_t token = 0, operation = 0;
    words >> verb >> resource >> table >> id >> token >> operation >> state;
    const auto done =
        guard.write(token, resource, to_change(verb, table, id, state), {.operation = operation});
    if (!done) {
      std::cout << to_text(done.error().code) << ": " << done.error().detail << std::endl;
      continue;
    }
    std::cout << to_text(done->decision.verdict)
              << (done->decision.let_through ? ", let through" : "") << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  return pawl::run(argc, argv);
}

// Writes to DynamoDB for guard_dynamodb.py: plain, as a program without a guard sends them, and
// through the guard. Prints the microseconds of one write.
//
//   pawl_bench_guard_dynamodb DSN put|guarded_put|transact|guarded_transact WRITES
#include <boost/json/array.hpp>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "guard/dynamodb/dsn.h"
#include "guard/dynamodb/front.h"

namespace pawl {
namespace {

constexpr std::uint64_t kToken = 34;

DynamoPut put_of(const std::string& table, int key, int number) {
  return {table,
          {{"id", DynamoValue::text(std::to_string(key))}, {"n", DynamoValue::number(number)}}};
}

bool send_plain(guard::DynamoStore& store, int number) {
  const auto op = guard::to_op(put_of("plain", 1, number));
  return guard::call_or_fail(store, "PutItem", guard::to_body(*op)).has_value();
}

bool transact_plain(guard::DynamoStore& store, int number) {
  boost::json::array elements;
  for (const int key : {1, 2})
    elements.push_back(guard::to_element(*guard::to_op(put_of("plain", key, number))));
  return guard::call_or_fail(store, "TransactWriteItems", {{"TransactItems", std::move(elements)}})
      .has_value();
}

int run(int argc, char** argv) {
  if (argc != 4) return 64;
  const auto options = guard::parse_dynamo_dsn(argv[1]);
  if (!options) return 64;
  const std::string how = argv[2];
  const int writes = std::atoi(argv[3]);
  const auto store = guard::open_dynamo_store(*options);
  DynamoGuard guard(*options);
  const std::function<bool(int)> write = [&](int number) {
    if (how == "put") return send_plain(**store, number);
    if (how == "transact") return transact_plain(**store, number);
    if (how == "guarded_put")
      return guard.write(kToken, "rows:1", put_of("rows", 1, number)).has_value();
    return guard
        .write_all(kToken, {"whole"}, {put_of("whole", 1, number), put_of("whole", 2, number)})
        .has_value();
  };
  // The first connects, and reads the policy.
  if (!write(0)) return 1;
  const auto begin = std::chrono::steady_clock::now();
  for (int number = 1; number <= writes; ++number) {
    if (!write(number)) return 1;
  }
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  std::cout << taken.count() / writes << "\n";
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  return pawl::run(argc, argv);
}

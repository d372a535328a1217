// Whatever DynamoDB answers: JSON, the items in it, policies and fences. What is taken for a policy
// is read back as it is written, and no fence is beyond what tokens can be.
#include <boost/json/parse.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/limits.h"
#include "guard/dynamodb/access.h"
#include "guard/dynamodb/names.h"
#include "guard/dynamodb/policy.h"
#include "guard/dynamodb/replies.h"
#include "guard/dynamodb/rules.h"
#include "guard/dynamodb/scratch_log.h"

namespace {

using namespace pawl::guard;

void read_item(const boost::json::object& item) {
  static_cast<void>(dynamo_log_effects(item));
  const DynamoItems items{"orders", "id", 'S', "sort", 'N', "a"};
  if (is_under(items, "orders", item)) {
    if (const auto key = key_text(items, item)) {
      const auto fields = key_fields(items, *key);
      PAWL_ASSERT(!fields || key_text(items, *fields).value() == *key);
    }
  }
  const auto fence = read_fence(item);
  if (!fence) return;
  PAWL_ASSERT(fence->token <= pawl::limits::kTokenMax);
  const auto admission = find_admission({}, {34, 5}, fence);
  const bool admitted = judge_dynamo_write({}, {34, 5}, *fence).verdict == pawl::Verdict::kAdmitted;
  PAWL_ASSERT(!admission || !holds(admission->test, *fence) || admitted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const int status : {200, 400, 500}) {
    const auto answer = read_dynamo_answer(status, bytes);
    if (!answer) continue;
    if (answer->item) read_item(*answer->item);
    if (const auto item = object_in(answer->body, "Item")) read_item(*item);
    for (const DynamoReason& reason : answer->reasons) {
      if (reason.item) read_item(*reason.item);
    }
  }
  if (const auto policy = parse_dynamo_policy(bytes))
    PAWL_ASSERT(parse_dynamo_policy(to_text(*policy)) == policy);
  static_cast<void>(policy_refuses_others(bytes));
  if (const auto number = canonical_number(bytes)) PAWL_ASSERT(canonical_number(*number) == number);
  static_cast<void>(parse_dynamo_pattern(bytes));
  return 0;
}

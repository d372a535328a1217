#include "guard/dynamodb/kind.h"

#include <fmt/format.h>

namespace pawl::guard {
namespace {

constexpr Abilities kDynamoAbilities{
    Ability::kConcurrency,  Ability::kOperationLast, Ability::kTextTokens, Ability::kTokenless,
    Ability::kUnguarded,    Ability::kModes,         Ability::kCanary,     Ability::kEmergency,
    Ability::kRequireToken, Ability::kMaxStep,       Ability::kCounts,     Ability::kRemove,
    Ability::kElsewhere,    Ability::kRehearsal,     Ability::kSeveral};

}  // namespace

const Kind kDynamoKind{
    .name = "dynamodb",
    .title = "DynamoDB",
    .location = Location::kDsn,
    .where_example = "'region=eu-central-1'",
    .abilities = kDynamoAbilities,
    .forms = kDynamoForms,
    .scratch_form = "row",
    .open_administration = open_dynamo_administration,
    .open_session = open_dynamo_session,
    .open_scratch = open_dynamo_scratch,
};

Result<DynamoScope> parse_dynamo_form(std::string_view text) {
  for (std::size_t i = 0; i < kDynamoForms.size(); ++i) {
    if (kDynamoForms[i] == text) return static_cast<DynamoScope>(i);
  }
  return Error{Code::kInvalid, fmt::format("unknown form \"{}\" of a guard in DynamoDB", text)};
}

}  // namespace pawl::guard

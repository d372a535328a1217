#include "guard/s3/kind.h"

namespace pawl::guard {
namespace {

constexpr Abilities kS3Abilities{
    Ability::kConcurrency,  Ability::kOperationLast, Ability::kTextTokens, Ability::kTokenless,
    Ability::kUnguarded,    Ability::kModes,         Ability::kCanary,     Ability::kEmergency,
    Ability::kRequireToken, Ability::kMaxStep,       Ability::kEqualOnce,  Ability::kEqualRefuse,
    Ability::kCounts,       Ability::kRemove,        Ability::kCompact,    Ability::kRehearsal};

}  // namespace

const Kind kS3Kind{
    .name = "s3",
    .title = "S3",
    .location = Location::kDsn,
    .where_example = "'bucket=shop region=eu-central-1'",
    .abilities = kS3Abilities,
    .forms = kS3Forms,
    .scratch_form = "direct",
    .open_administration = open_s3_administration,
    .open_session = open_s3_session,
    .open_scratch = open_s3_scratch,
};

}  // namespace pawl::guard

#include "guard/dynamodb/dsn.h"

#include <utility>

#include "aws/credentials.h"
#include "guard/dsn_pairs.h"

namespace pawl::guard {
namespace {

struct DynamoDsn {
  std::string region = {};
  std::string endpoint = {};
  std::string guards = {};
  std::string ca_file = {};
  std::string credentials_file = {};
  std::string profile = {};
};
constexpr DsnText<DynamoDsn> kDynamoWords[] = {
    {"region", &DynamoDsn::region},
    {"endpoint", &DynamoDsn::endpoint},
    {"guards", &DynamoDsn::guards},
    {"ca_file", &DynamoDsn::ca_file},
    {"credentials_file", &DynamoDsn::credentials_file},
    {"profile", &DynamoDsn::profile},
};

Result<void> set_word(DynamoDsn& dsn, std::string_view key, std::string_view value) {
  if (set_dsn_text(dsn, kDynamoWords, key, value)) return {};
  if (key == "access_key" || key == "secret_key" || key == "session_token")
    return Error{Code::kInvalid,
                 "keys belong into a credentials_file or the variables AWS_ACCESS_KEY_ID and "
                 "AWS_SECRET_ACCESS_KEY, not into the DSN"};
  return Error{Code::kInvalid,
               "a DSN for DynamoDB has region, endpoint, guards (the table of guards), ca_file, "
               "credentials_file and profile, such as region=eu-central-1"};
}

void fill(std::string& field, std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (field.empty()) field = aws::from_environment(variable);
  }
}

}  // namespace

Result<DynamoOptions> parse_dynamo_dsn(std::string_view text) {
  DynamoDsn dsn;
  const auto read = read_dsn_pairs(text, [&](std::string_view key, std::string_view value) {
    return set_word(dsn, key, value);
  });
  if (!read) return read.error();
  fill(dsn.region, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  fill(dsn.endpoint, {"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"});
  fill(dsn.ca_file, {"AWS_CA_BUNDLE"});
  auto keys = aws::find_credentials(dsn.credentials_file, dsn.profile);
  if (!keys) return keys.error();
  DynamoOptions options;
  if (!dsn.region.empty()) options.region = dsn.region;
  if (!dsn.guards.empty()) options.guards_table = dsn.guards;
  options.endpoint = dsn.endpoint;
  options.ca_file = dsn.ca_file;
  options.access_key = std::move(keys->access_key);
  options.secret_key = std::move(keys->secret_key);
  options.session_token = std::move(keys->session_token);
  return options;
}

}  // namespace pawl::guard

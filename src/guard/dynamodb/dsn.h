// Where a guarded DynamoDB is, as text: region=eu-central-1.
#pragma once

#include <string_view>

#include "pawl/dynamodb.h"
#include "pawl/result.h"

namespace pawl::guard {

// region, endpoint, guards (the table of guards), ca_file, credentials_file, profile. What is
// missing comes from the variables that Amazon's own tools read: AWS_REGION,
// AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, AWS_CA_BUNDLE, and as aws/credentials.h says.
[[nodiscard]] Result<DynamoOptions> parse_dynamo_dsn(std::string_view text);

}  // namespace pawl::guard

// Where a guarded bucket is, as text: bucket=shop region=eu-central-1, or s3://shop.
#pragma once

#include <string_view>

#include "pawl/result.h"
#include "pawl/s3.h"

namespace pawl::guard {

// bucket, region, endpoint, style (path or virtual), ca_file, credentials_file, profile. What is
// missing comes from the variables that Amazon's own tools read: AWS_REGION, AWS_ENDPOINT_URL_S3,
// AWS_ENDPOINT_URL, AWS_CA_BUNDLE, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
// AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE.
[[nodiscard]] Result<S3Options> parse_s3_dsn(std::string_view text);

}  // namespace pawl::guard

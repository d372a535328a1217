// A bucket of S3, or of a store that is compatible with it, over HTTP.
#pragma once

#include <memory>
#include <string>

#include "aws/http.h"
#include "aws/sigv4.h"
#include "guard/s3/object_store.h"
#include "pawl/s3.h"

namespace pawl::guard {

// kInvalid: an option is missing or wrong; nothing is connected to.
[[nodiscard]] Result<std::unique_ptr<ObjectStore>> open_s3_store(const S3Options& options);
// The same over another carrier of requests, for tests.
[[nodiscard]] Result<std::unique_ptr<ObjectStore>> open_s3_store(const S3Options& options,
                                                                 std::unique_ptr<aws::Http> http);

}  // namespace pawl::guard

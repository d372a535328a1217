// S3 as a kind of guard.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "guard/kind.h"

namespace pawl::guard {

extern const Kind kS3Kind;

// The forms of scratch resources: content in the fenced object, or in an object of its own.
inline constexpr std::array<std::string_view, 2> kS3Forms{"direct", "pointer"};

// Its parts.
[[nodiscard]] Result<std::unique_ptr<Administration>> open_s3_administration(
    const std::string& dsn);
[[nodiscard]] Result<std::unique_ptr<Session>> open_s3_session(const std::string& dsn,
                                                               const SessionRequest& request);
[[nodiscard]] Result<std::unique_ptr<ScratchSpace>> open_s3_scratch(const std::string& dsn,
                                                                    std::string_view form);

// A scratch object without a guard: plain lines.
inline constexpr std::string_view kS3Bare = "_bare_";

}  // namespace pawl::guard

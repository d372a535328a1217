// DynamoDB as a kind of guard.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "guard/dynamodb/policy.h"
#include "guard/kind.h"

namespace pawl::guard {

extern const Kind kDynamoKind;

// The forms of scratch resources: those of DynamoScope.
inline constexpr std::array<std::string_view, 2> kDynamoForms{"static", "row"};
[[nodiscard]] Result<DynamoScope> parse_dynamo_form(std::string_view text);

// Its parts.
[[nodiscard]] Result<std::unique_ptr<Administration>> open_dynamo_administration(
    const std::string& dsn);
[[nodiscard]] Result<std::unique_ptr<Session>> open_dynamo_session(const std::string& dsn,
                                                                   const SessionRequest& request);
[[nodiscard]] Result<std::unique_ptr<ScratchSpace>> open_dynamo_scratch(const std::string& dsn,
                                                                        std::string_view form);

}  // namespace pawl::guard

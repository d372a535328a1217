#include "guard/postgres/connection.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

PgFailure failure(std::string state) {
  return {.state = std::move(state), .message = "no", .detail = "", .hint = ""};
}

TEST(Failures, ASerializationFailureIsNeverCalledStale) {  // Hard case 56.
  EXPECT_TRUE(may_pass_again(failure("40001")));
  EXPECT_TRUE(may_pass_again(failure("40P01")));
  EXPECT_EQ(to_error(failure("40001")).code, Code::kUnavailable);
}

TEST(Failures, StaleIsFinal) {
  EXPECT_EQ(to_error(failure("PW002")).code, Code::kStaleToken);
  EXPECT_FALSE(may_pass_again(failure("PW002")));
}

TEST(Failures, TheOtherRefusalsAreTheCallersMistake) {
  for (const char* state : {"PW001", "PW003", "PW004", "PW005", "PW006", "PW008", "42601"}) {
    EXPECT_EQ(to_error(failure(state)).code, Code::kInvalid) << state;
    EXPECT_FALSE(may_pass_again(failure(state))) << state;
  }
}

TEST(Failures, WhatTheServerCouldNotDoHasNotHappened) {
  for (const char* state : {"57014", "57P01", "53300", "08006", "55P03"}) {
    EXPECT_EQ(to_error(failure(state)).code, Code::kUnavailable) << state;
  }
  EXPECT_EQ(
      to_error({.state = "", .message = "gone", .detail = "", .hint = "", .disconnected = true})
          .code,
      Code::kUnavailable);
}

TEST(Failures, ADatabaseWithoutTheGuardIsToldHowToGetIt) {
  EXPECT_NE(to_error(failure("3F000")).detail.find("pawl guard install"), std::string::npos);
}

TEST(Failures, ARoleWithoutRightsIsToldWhichOneHasThem) {
  const Error denied = to_error(failure("42501"));
  EXPECT_EQ(denied.code, Code::kDenied);
  EXPECT_NE(denied.detail.find("as the role that installed the guard"), std::string::npos);
  PgFailure refused = failure("42501");
  refused.hint = "SELECT pawl.allow(…)";
  EXPECT_EQ(to_error(refused).detail.find("as the role"), std::string::npos);
}

TEST(Statement, ArraysQuoteWhatPostgresWouldRead) {
  EXPECT_EQ(array_of({}), "{}");
  EXPECT_EQ(array_of({"a", "b,c", "d\"e\\f", ""}), R"({"a","b,c","d\"e\\f",""})");
}

}  // namespace
}  // namespace pawl::guard

// Which token passes: the comparison itself, and what is no token at all.
#include <array>

#include "base/limits.h"
#include "conformance/cases.h"

namespace pawl::conformance {
namespace {

constexpr std::uint64_t kVerdictStep = std::uint64_t{1}
                                       << 41;  // No guard allows a smaller max_step.

Policy whole_range() {
  return {.max_step = limits::kTokenMax};
}

void first_token(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect_fence(resource, {});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect_fence(resource, 34);
}

void smallest_token(Trial& trial) {
  trial.expect(Answer::kAdmitted, write(trial.fresh(), 1));
}

void greater_token(Trial& trial) {
  const std::string resource = trial.fresh();
  for (const std::uint64_t token : {5U, 6U, 9U, 1000U})
    trial.expect(Answer::kAdmitted, write(resource, token));
}

void equal_token(Trial& trial) {
  const std::string resource = trial.fresh();
  for (int i = 0; i < 3; ++i) trial.expect(Answer::kAdmitted, write(resource, 34));
}

void smaller_token(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect(Answer::kStale, write(resource, 33));
  trial.expect(Answer::kStale, write(resource, 1));
}

void stale_for_ever(Trial& trial) {
  const std::string resource = trial.fresh();
  trial.expect(Answer::kAdmitted, write(resource, 34));
  for (int i = 0; i < 3; ++i) trial.expect(Answer::kStale, write(resource, 33));
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect(Answer::kStale, write(resource, 33));
}

// "9" is greater than "10" to a guard that compares text.
void as_numbers(Trial& trial) {
  const std::string resource = trial.fresh();
  for (const std::uint64_t token : {9U, 10U, 99U, 100U, 1000U})
    trial.expect(Answer::kAdmitted, write(resource, token));
  trial.expect(Answer::kStale, write(resource, 999));
}

void greatest_token(Trial& trial) {
  const std::string resource = trial.fresh(whole_range());
  trial.expect(Answer::kAdmitted, write(resource, limits::kTokenMax));
  trial.expect(Answer::kAdmitted, write(resource, limits::kTokenMax));
}

// 2^31 and 2^32 are where narrower integers end, 2^53 − 1 is next to what a double rounds.
void neighbours(Trial& trial) {
  const std::string resource = trial.fresh(whole_range());
  for (const std::uint64_t token :
       {std::uint64_t{1} << 31, std::uint64_t{1} << 32, limits::kTokenMax}) {
    trial.expect(Answer::kAdmitted, write(resource, token));
    trial.expect(Answer::kStale, write(resource, token - 1));
    trial.expect_fence(resource, token);
  }
}

void refuse_texts(Trial& trial, std::initializer_list<const char*> texts) {
  const std::string resource = trial.fresh(whole_range());
  for (const char* text : texts) trial.expect(Answer::kMalformed, write_text(resource, text));
  trial.expect(Answer::kAdmitted, write(resource, 5));
  for (const char* text : texts) trial.expect(Answer::kMalformed, write_text(resource, text));
  trial.expect(Answer::kAdmitted, write(resource, 5));
}

void overflow(Trial& trial) {
  refuse_texts(trial, {"9007199254740992", "9223372036854775807", "9223372036854775808",
                       "18446744073709551616", "99999999999999999999999999"});
}

void not_positive(Trial& trial) {
  refuse_texts(trial, {"0", "-1", "-9007199254740991"});
}

void not_a_number(Trial& trial) {
  refuse_texts(trial, {"abc", "", "34x", "1.5", "1,2", "--1", "NaN"});
}

void odd_spelling(Trial& trial) {
  refuse_texts(trial, {"007", " 7", "7 ", "+7", "0x10", "1e3", "1_000", "7\n"});
}

void ahead(Trial& trial) {
  const std::string resource = trial.fresh({.max_step = kVerdictStep});
  trial.expect(Answer::kAdmitted, write(resource, 10));
  trial.expect(Answer::kAhead, write(resource, 10 + kVerdictStep + 1));
  trial.expect(Answer::kAhead, write(resource, limits::kTokenMax));
  trial.expect(Answer::kAdmitted, write(resource, 11));
}

void whole_step(Trial& trial) {
  const std::string resource = trial.fresh({.max_step = kVerdictStep});
  trial.expect(Answer::kAdmitted, write(resource, 10));
  trial.expect(Answer::kAdmitted, write(resource, 10 + kVerdictStep));
}

void missing_refused(Trial& trial) {
  const std::string resource = trial.fresh({.require_token = true});
  trial.expect(Answer::kMissing, write_without_token(resource));
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect(Answer::kMissing, write_without_token(resource));
}

void missing_passes(Trial& trial) {
  const std::string resource = trial.fresh({.require_token = false});
  trial.expect_unjudged(write_without_token(resource));
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.end_session();
  trial.expect_unjudged(write_without_token(resource));
  trial.expect(Answer::kStale, write(resource, 33));
}

void strictly_greater(Trial& trial) {
  const std::string resource = trial.fresh({.equal = Equal::kRefuse});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  trial.expect(Answer::kStale, write(resource, 34));
  trial.expect(Answer::kAdmitted, write(resource, 35));
}

void unguarded(Trial& trial) {
  const std::string unguarded = "not_under_guard_" + trial.fresh();
  const Outcome outcome = trial.attempt(write(unguarded, 34));
  if (outcome.answer != Answer::kUnguarded || outcome.let_through)
    fail("a write to a resource that is not under guard was answered \"" +
         std::string(to_text(outcome.answer)) + "\", expected \"unguarded\": " + outcome.detail);
}

// The holder loses nothing through what others were refused.
void refused_moves_nothing(Trial& trial) {
  const std::string resource = trial.fresh({.max_step = kVerdictStep});
  trial.expect(Answer::kAdmitted, write(resource, 34));
  const auto still_holds = [&] {
    trial.expect_fence(resource, 34);
    trial.expect(Answer::kAdmitted, write(resource, 34));
  };
  trial.expect(Answer::kStale, write(resource, 33));
  still_holds();
  trial.expect(Answer::kMalformed, write_text(resource, "9007199254740992"));
  still_holds();
  if (!trial.has(Ability::kMaxStep)) return;
  trial.expect(Answer::kAhead, write(resource, limits::kTokenMax));
  still_holds();
}

constexpr std::array kVerdictCases{
    Case{"first-token", "the first token is admitted and becomes the fence", first_token},
    Case{"smallest-token", "token 1 is a token", smallest_token},
    Case{"greater-token", "a greater token is admitted and raises the fence", greater_token},
    Case{"equal-token", "the holder writes again under its token", equal_token},
    Case{"smaller-token", "a smaller token is stale and leaves no effect", smaller_token},
    Case{"stale-for-ever", "a stale token stays stale however often it is sent", stale_for_ever},
    Case{"as-numbers", "tokens are compared as numbers, not as text", as_numbers},
    Case{"greatest-token", "2^53-1 is admitted, and again", greatest_token, {Ability::kMaxStep}},
    Case{"neighbours",
         "tokens that differ by one are told apart up to 2^53-1",
         neighbours,
         {Ability::kMaxStep}},
    Case{"overflow", "a token above 2^53-1 is malformed", overflow},
    Case{"not-positive", "zero and negative numbers are no tokens", not_positive},
    Case{"not-a-number", "what is not a number is no token", not_a_number},
    Case{"odd-spelling",
         "a number spelled with zeros, signs, spaces or exponents is no token",
         odd_spelling,
         {Ability::kTextTokens}},
    Case{"ahead",
         "a token beyond max_step is ahead, and the holder goes on",
         ahead,
         {Ability::kMaxStep}},
    Case{"whole-step",
         "a token exactly max_step above the fence is admitted",
         whole_step,
         {Ability::kMaxStep}},
    Case{"missing-refused",
         "a write without a token is refused where tokens are required",
         missing_refused,
         {Ability::kTokenless, Ability::kRequireToken}},
    Case{"missing-passes",
         "a write without a token passes where none is required, and moves nothing",
         missing_passes,
         {Ability::kTokenless}},
    Case{"strictly-greater",
         "under `equal: refuse` a second write under a token is stale",
         strictly_greater,
         {Ability::kEqualRefuse}},
    Case{"unguarded",
         "a write to a resource that is not under guard is answered so",
         unguarded,
         {Ability::kUnguarded}},
    Case{"refused-moves-nothing", "a refused token never moves the fence", refused_moves_nothing},
};

}  // namespace

std::span<const Case> verdict_cases() {
  return kVerdictCases;
}

}  // namespace pawl::conformance

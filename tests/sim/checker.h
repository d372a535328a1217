// The properties P1–P8 (and G2, G6, G7, MH, EL) over a history. Near-linear in its length: the
// token gives the order, so nothing is searched for. Grants are replayed in order of token,
// each at the earliest moment at which it can have happened, and an answer that came before that
// moment is a violation:
//
//   earliest(t) = the latest of
//     (P2) its own first send and those of all smaller tokens
//     (P3) the moment at which each conflicting holder can have ended, by its clock
//     (P4) the send of what proved such a holder alive: a renewal, a sighting
//
// checker_search.h decides the same question for small histories by trying every order; the two
// must agree (checker_cross_test.cc). Unknown outcomes (kOpen) are never held against anyone.
#pragma once

#include <string>
#include <vector>

#include "sim/history.h"

namespace pawl::sim {

// Every violation as a sentence that begins with its property; empty when the history is fine.
[[nodiscard]] std::vector<std::string> check(const History& history);

// --- The parts of it -----------------------------------------------------------------------------

using Faults = std::vector<std::string>;

void check_order(const History& history,
                 Faults& faults);  // P2, P3, P4, and G2 by pawld's own answers
void check_belief(const History& history,
                  Faults& faults);  // G7: no two believe to hold; G2: no early loss
void check_requests(const History& history, Faults& faults);  // P1, P8
void check_queues(const History& history, Faults& faults);    // G6, P7
void check_guards(const History& history, Faults& faults);    // P5
void check_starts(const History& history, Faults& faults);    // P6
void check_raises(const History& history, Faults& faults);    // P2 and P6 after RAISE
void check_tenures(const History& history,
                   Faults& faults);  // MH: no time promised beyond MAXHOLD
void check_leaders(const History& history,
                   Faults& faults);  // EL: what observers of an election receive

// What is surely true in the world after `span` on a clock within ρ of it.
[[nodiscard]] constexpr Nanos surely_passed(Nanos span) {
  return span / 100 * 99;
}

// Where a lease stands, from everything the history says of it.
struct Life {
  const Attempt* attempt = nullptr;  // nullptr: seen, but no client got the reply.
  Token token;
  Moment first_seen = kOpen;  // A client had received the token by then.
  Moment clock_end{};         // It cannot have run out before.
  Moment given_up = kOpen;    // A release, or BREAK … NOW, was sent.
  Moment last_proof{};        // It was alive at this moment or later.
  Moment over = kOpen;        // A client had received by then that it is over.
  Moment breaking = kOpen;    // BREAK was answered: no renewal after that.
  Moment touched_by_break = kOpen;
  Moment voided =
      kOpen;  // By a restore: requests get LOST, and only its clock keeps its locks closed.
  // Of the release that ended it, if one is known to have.
  Moment released_sent = kOpen, released = kOpen;
  std::string proof;

  // The earliest moment at which its locks can have passed on.
  [[nodiscard]] Moment end(Demand demand) const;
};
// In order of token.
[[nodiscard]] std::vector<Life> lives(const History& history);

// When a restore made the lease void; kOpen: none did.
[[nodiscard]] Moment voided_at(const History& history, Token token);

[[nodiscard]] std::string name(const Attempt& attempt);
[[nodiscard]] double ms(Moment moment);

}  // namespace pawl::sim

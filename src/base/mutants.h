// Bugs planted on purpose. Each is a mistake that a real lock service has had, or that a
// counterexample showed. The tests must catch every one of them (`make mutants`); a test suite that
// catches nothing is not evidence.
//
//   if (PAWL_MUTANT(barging) || lock.waiters == 0) …
//
// PAWL_MUTANT(name) is the constant false, except in the build of `make mutants`
// (-DPAWL_MUTANTS=ON), where it is true while that bug is chosen. The binaries that ship contain no
// trace of them (mutants_absent_test).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

// The name, and the rule that the bug breaks.
#define PAWL_MUTANT_LIST(X)                                                                        \
  /* Granting */                                                                                   \
  X(limit_off_by_one, "one holder too many")                                                       \
  X(reader_beside_writer, "readers share with readers only")                                       \
  X(barging, "a later request waits, even if it could have the lock at once")                      \
  X(and_out_of_order, "several locks are granted in turn, not whenever they are free")             \
  X(slot_given_twice, "each slot of a limited lock is a resource of its own")                      \
  X(floor_is_own_token,                                                                            \
    "a reader's floor is the smallest live token, or readers fence each other out")                \
  /* Retries */                                                                                    \
  X(retry_is_a_new_request, "a retry is the same request")                                         \
  X(request_not_persisted, "the request id is stored in the batch of its grant")                   \
  X(request_forgotten_at_end, "a request whose lease ended is not granted again")                  \
  X(conflict_not_noticed, "the same id with other terms is a conflict")                            \
  /* Ending */                                                                                     \
  X(renewal_after_expiry, "an expired lease is not revived")                                       \
  X(release_by_name, "a late release never touches the next holder")                               \
  X(cancel_keeps_waiting, "a cancelled wait is never granted")                                     \
  X(hangups_after_requests, "hang-ups count before grants")                                        \
  X(break_can_be_renewed, "a broken lease is not renewed")                                         \
  X(break_not_persisted, "a broken lease stays broken over a restart")                             \
  X(blocked_wait_outlives_hangup, "a hang-up ends a blocking wait as well")                        \
  X(max_hold_ignored, "MAXHOLD caps the tenure, however often it is renewed")                      \
  X(max_hold_forgotten_by_restart, "a cap is part of the lease's record")                          \
  X(delay_ignored, "a lock with a delay stays closed after an expiry")                             \
  X(delay_forgotten_by_restart, "a delay starts in full after a restart")                          \
  /* Time */                                                                                       \
  X(wall_clock_decides, "only monotonic clocks decide anything")                                   \
  X(clock_before_sockets, "a request is never dated before it was sent")                           \
  X(ttl_from_apply, "a TTL begins when its grant is durable")                                      \
  X(expiry_a_moment_early, "deadlines are rounded up, never down")                                 \
  X(deadline_from_reply, "the client counts from the send, not from the reply")                    \
  X(deadline_from_retry, "the client counts from the first send, not from the retry")              \
  X(clock_stops_in_suspend, "the client's clock goes on while its machine sleeps")                 \
  X(renewal_from_reply, "a renewal counts from its send")                                          \
  X(drift_ignored, "two clocks do not run at one rate")                                            \
  X(failed_renewal_extends, "uncertainty is loss")                                                 \
  /* Durability */                                                                                 \
  X(answer_before_sync, "no answer is sent before the batch is on disk")                           \
  X(failed_commit_goes_on, "after a failed write the content of the disk is unknown")              \
  X(sync_skipped, "written is not durable")                                                        \
  X(recovered_not_synced,                                                                          \
    "what a killed process left in the cache is synced before it is acted on")                     \
  X(raise_not_persisted, "RAISE survives a crash")                                                 \
  X(small_file_not_synced, "a file is synced before it is renamed into place")                     \
  X(rename_not_synced, "a rename is durable when the directory is")                                \
  X(token_block_not_reserved, "tokens are reserved before they are used")                          \
  X(high_water_ignored, "even a lost tail never leads to a token twice")                           \
  X(last_token_not_recorded, "the counter is in every batch that grants")                          \
  X(leases_forgotten_by_restart, "an acknowledged grant survives")                                 \
  X(restart_shortens_ttl, "after a restart every lease has its full TTL")                          \
  X(release_not_persisted, "an acknowledged release survives")                                     \
  X(damage_taken_for_torn_tail, "a bad record before a good one is damage, not the end")           \
  X(torn_tail_refused, "what was never acknowledged may be missing")                               \
  X(segment_id_not_checked, "old records of a recycled segment are not valid")                     \
  X(checkpoint_not_synced, "segments are removed only after the checkpoint is durable")            \
  X(checkpoint_keeps_deleted, "what was deleted stays deleted")                                    \
  /* Restores */                                                                                   \
  X(restore_without_new_era, "a restored store begins above all that was issued after its backup") \
  X(restore_without_wait, "a lease granted after the backup has ended before its lock is granted") \
  X(restored_wait_not_repeated, "a restart starts the wait in full")                               \
  X(restored_sequence_goes_back, "the numbers of events only grow, over a restore, too")           \
  /* Several pawld on one store */                                                                 \
  X(role_window_ignored, "past its window an active one says nothing from memory")                 \
  X(epoch_not_compared, "every write compares who is active")                                      \
  X(takeover_too_soon, "a standby waits until the window of the active one is over")               \
  X(takeover_with_a_stale_copy, "a takeover reads all that was written before it")                 \
  X(unknown_taken_for_success, "a write is durable when the log says so")                          \
  X(unknown_taken_for_failure, "after an unknown outcome the same write is sent again")            \
  /* Elections */                                                                                  \
  X(resumes_from_now, "an observer that reconnects continues after the last event it received")    \
  X(reset_ignored, "an observer that missed events reads the state again")                         \
  X(leader_goes_back, "an event older than the state that was read changes nothing")               \
  X(resume_skips_an_event, "an observer that resumes gets every later event")                      \
  X(reset_not_told, "an observer that cannot resume gets a reset")                                 \
  /* Guards */                                                                                     \
  X(strict_token, "a holder writes many times under one token")                                    \
  X(operation_number_ignored, "a repeated operation happens once")                                 \
  X(smaller_operation_replayed, "one number cannot tell done from never arrived")                  \
  X(tombstone_dropped, "deleting a resource does not forget its fence")                            \
  X(refused_token_moves_fence, "a refused token moves nothing")                                    \
  X(reader_raises_fence, "checking never raises a fence")                                          \
  X(check_then_write, "check and write are one step")                                              \
  X(fence_in_memory, "the fence is as durable as the resource")                                    \
  X(no_advance_before_reading, "a new holder advances the guard before it reads")

namespace pawl {

enum class Mutant : std::uint8_t {
#define PAWL_MUTANT_NAME(name, lesson) name,
  PAWL_MUTANT_LIST(PAWL_MUTANT_NAME)
#undef PAWL_MUTANT_NAME
      none,
};

#ifdef PAWL_MUTANTS

struct MutantEntry {
  Mutant mutant;
  std::string_view name, lesson;
};
inline constexpr std::array kMutants{
#define PAWL_MUTANT_ENTRY(name, lesson) MutantEntry{Mutant::name, #name, lesson},
    PAWL_MUTANT_LIST(PAWL_MUTANT_ENTRY)
#undef PAWL_MUTANT_ENTRY
};

// Chosen once, before anything runs.
inline Mutant chosen_mutant = Mutant::none;

#define PAWL_MUTANT(name) (::pawl::chosen_mutant == ::pawl::Mutant::name)

#else

// Checks that the mutant exists; a constant false.
#define PAWL_MUTANT(name) (::pawl::Mutant::name == ::pawl::Mutant::none)

#endif

}  // namespace pawl

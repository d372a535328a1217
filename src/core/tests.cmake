# The core's tests, and what they share with the simulator.
find_package(rapidcheck REQUIRED)

pawl_library(core_invariants SOURCES testlib/describe.cc testlib/invariants.cc DEPS pawl_core)
pawl_library(core_naive SOURCES testlib/naive_model.cc testlib/naive_reads.cc DEPS pawl_core_invariants)
pawl_test(core_test SOURCES core_test.cc core_restart_test.cc core_restoring_test.cc core_waiting_test.cc
  core_work_test.cc core_limits_test.cc core_asks_test.cc core_batches_test.cc DEPS pawl_core_naive)
pawl_test(core_model_test SOURCES model_test.cc testlib/model_duel.cc DEPS pawl_core_naive rapidcheck)

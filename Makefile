# One door. `make run` starts Pawl, `make test` proves it; both set up what is missing first.

SHELL := /bin/bash
JOBS ?= $(shell nproc)
BIN := build/bin

.PHONY: help demo run run-ha build programs deb test test-deep test-all test-etcd-versions mutants models soak torture failovers bench format tidy setup clean

help:
	@echo "make demo      set up, build, and show in a minute what this is about"
	@echo "make run       set up, build, start pawld on loopback with its data in ./pawl-data"
	@echo "make run-ha    the same with three pawld on three etcd, of which you may kill any"
	@echo "make build     set up and build the binaries into build/bin/"
	@echo "make deb       the same, as Debian packages in build/; prints which"
	@echo "make test      set up, build, prove the product: unit, simulation, end-to-end, guards, docs"
	@echo "make test-deep sanitizers, planted bugs, fuzzing, faults at random, models, new seeds"
	@echo "make test-all  both, and the whole suite under the sanitizers (hours)"
	@echo "make test-etcd-versions [ETCD_VERSIONS='3.6.9 …']   several pawld on other versions of etcd, which it builds with Go"
	@echo "make mutants   plant every known kind of bug, and show which property catches it"
	@echo "make models [DEEP=1]   check the models of the protocol; DEEP: within larger bounds (minutes, 6 GB)"
	@echo "make soak HOURS=n   simulate new seeds for n hours"
	@echo "make torture HOURS=n [SEED=n] [ONLY=kinds]   real programs under kills, freezes, partitions and bad disks for n hours"
	@echo "make failovers COUNT=n   lose the active one of three pawld n times, and tell how long nobody served"
	@echo "make bench     pawld beside Redis and two ceilings, and what guards cost, as ratios of one run"
	@echo "make format    format the sources;  make tidy: clang-tidy over them"

# Tests labelled `deep` look for what the others cannot see; `long` ones take many minutes each.
# Most tests wait for servers, leases and processes: three times as many at once as there are cores keeps these busy.
TEST_JOBS ?= $(shell echo $$((3 * $(JOBS))))
CTEST := ctest --test-dir build -j $(TEST_JOBS) --output-on-failure

# A build for users leaves the tests out, so that it needs fewer packages; the objects are shared.
build:
	@scripts/setup build
	@cmake --preset release -DPAWL_TESTS=OFF >/dev/null
	@cmake --build build -j $(JOBS)

# The same without the libraries that C++ programs link: for those who want to see Pawl run, and soon.
programs:
	@scripts/setup build
	@cmake --preset release -DPAWL_TESTS=OFF >/dev/null
	@cmake --build build -j $(JOBS) --target pawl pawld libpawl_sqlite

deb: build
	@scripts/setup deb
	@set -o pipefail; cd build && cpack --config CPackConfig.cmake | sed -n 's/^CPack: - package: \(.*\) generated\.$$/\1/p'

# `make demo FAST=1` for the impatient.
demo: programs
	@exec $(BIN)/pawl demo $(if $(FAST),--fast)

run: programs
	@exec $(BIN)/pawld --data pawl-data

run-ha: programs
	@scripts/setup ha
	@exec scripts/run_ha $(BIN)/pawld pawl-ha

# On a new machine the programs are compiled while the packages that only tests need are installed.
test:
	@scripts/setup build
	@scripts/setup --check test || { scripts/setup test & setup=$$!; \
	  cmake --preset release -DPAWL_TESTS=OFF >/dev/null && cmake --build build -j $(JOBS); built=$$?; \
	  wait $$setup && exit $$built; }
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS)
	@$(CTEST) -LE 'deep|long'

test-deep:
	@scripts/setup test bench deep
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS)
	@$(CTEST) -L deep -LE long

test-all:
	@scripts/setup test bench deep
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS)
	@$(CTEST)

# The tests of etcd and of several pawld on it, with versions that Debian does not have.
ETCD_VERSIONS ?= 3.5.24 3.6.9
test-etcd-versions:
	@scripts/setup test
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS)
	@set -e; for version in $(ETCD_VERSIONS); do \
	  scripts/etcd $$version build/etcd; \
	  echo "etcd $$version"; \
	  PAWL_ETCD=$(abspath build/etcd)/etcd-$$version ctest --test-dir build --output-on-failure -R '^etcd_.*_test|^nemesis_cluster'; \
	done

# Bugs planted on purpose, each caught by some property: src/base/mutants.h.
mutants:
	@scripts/setup test
	@scripts/mutants $(JOBS)

# Exhaustively, within bounds: tests/models.
models:
	@scripts/setup test
	@tests/models/models_test.py $(if $(DEEP),--deep)

# Seeds that no run has seen, one process per core; stops at the first that fails, and says how to replay it.
HOURS ?= 1
soak:
	@scripts/setup test
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS) --target simulation_test
	@scripts/soak build/tests/simulation_test $(HOURS) $(JOBS)

# Real programs, real faults, seeds that no run has seen unless SEED says which; tells how to play a failing world again.
TORTURE := pawld pawl nemesis_worker nemesis_jumping_wall check_history libpawl_sqlite pawl_failing_io pawl_lossy_fs
torture:
	@scripts/setup test
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS) --target $(TORTURE)
	@PYTHONPATH=tests /usr/bin/python3 tests/nemesis/nemesis.py --hours $(HOURS) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) --json build/torture.json
	@PYTHONPATH=tests PAWLD=$(abspath $(BIN))/pawld PAWL_E2E_DIR=$(abspath build/tests/e2e) $(if $(SEED),PAWL_TORTURE_SEED=$(SEED)) PAWL_FAILOVER_SECONDS=$$(/usr/bin/python3 -c 'print(max(120, $(HOURS) * 360))') /usr/bin/python3 tests/etcd/failover_torture_test.py

COUNT ?= 1000
failovers:
	@scripts/setup test
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS) --target pawld
	@PYTHONPATH=tests PAWLD=$(abspath $(BIN))/pawld PAWL_E2E_DIR=$(abspath build/tests/e2e) $(if $(SEED),PAWL_TORTURE_SEED=$(SEED)) PAWL_FAILOVERS=$(COUNT) /usr/bin/python3 tests/etcd/failover_torture_test.py FailoverTortureTest

bench:
	@scripts/setup test bench
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS)
	@/usr/bin/python3 bench/run.py --build build
	@PYTHONPATH=tests /usr/bin/python3 bench/guard_postgres.py --build build
	@/usr/bin/python3 bench/guard_sqlite.py --build build
	@PYTHONPATH=tests /usr/bin/python3 bench/guard_mariadb.py
	@PYTHONPATH=tests /usr/bin/python3 bench/guard_redis.py
	@PYTHONPATH=tests /usr/bin/python3 bench/guard_etcd.py --build build
	@PYTHONPATH=tests /usr/bin/python3 bench/guard_dynamodb.py --build build

format:
	@scripts/setup test
	@scripts/sources | xargs clang-format -i

tidy:
	@scripts/setup test
	@cmake --preset release -DPAWL_TESTS=ON >/dev/null
	@scripts/sources | grep '\.cc$$' | xargs -P $(JOBS) -n 4 clang-tidy -p build --quiet

setup:
	@scripts/setup build test bench

clean:
	@rm -rf build

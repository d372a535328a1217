#!/usr/bin/python3
"""Proves that the nemesis can fail: the real programs with one bug planted in each run must be
found out.

    plants.py [NAME…] [--tries 12]      scripts/plants builds with planted bugs and runs this

Prints a table: the bug, what found it, how many worlds that took. Exit 1: one was not found, or the
same build without any bug was; 77: see nemesis.py. """

import argparse
import collections
import os
import sys

import namespaces
import nemesis

# `only`: the faults that show it; None: all kinds.
Plant = collections.namedtuple("Plant", "disk guard lesson only", defaults=[None])
SECONDS = 20
SECONDS_OF_A_CLUSTER = 40

# Bugs of src/base/mutants.h that real programs can be made to show within seconds, on the disk
# where they matter. Others of a cluster are for the simulator: the client of etcd never gives up a
# write without an answer, and a standby that has waited for role_ttl has read all that was written.
PLANTS = {
    "deadline_from_reply": Plant("plain", "sqlite", "the client counts from the reply"),
    "failed_renewal_extends": Plant("plain", "sqlite", "a renewal without an answer counts"),
    "leases_forgotten_by_restart": Plant(
        "plain", "sqlite", "pawld forgets leases when it is killed"
    ),
    "restart_shortens_ttl": Plant("plain", "sqlite", "a restart does not begin the TTL anew"),
    "release_not_persisted": Plant(
        "plain", "sqlite", "a release is forgotten when pawld is killed"
    ),
    "last_token_not_recorded": Plant(
        "plain", "sqlite", "the counter is not in the batch of the grant"
    ),
    "retry_is_a_new_request": Plant("plain", "sqlite", "a retry is granted once more"),
    "request_forgotten_at_end": Plant(
        "plain", "sqlite", "a request whose lease ended is granted again"
    ),
    "reader_beside_writer": Plant("plain", "sqlite", "readers are granted beside a writer"),
    "limit_off_by_one": Plant("plain", "sqlite", "one holder too many"),
    "slot_given_twice": Plant("plain", "sqlite", "two holders in one slot"),
    "barging": Plant("plain", "sqlite", "a later request is served first"),
    "break_can_be_renewed": Plant("plain", "sqlite", "a broken lease is renewed"),
    "answer_before_sync": Plant("lossy", "sqlite", "answered before it is on disk"),
    "failed_commit_goes_on": Plant("failing", "sqlite", "a failed write is passed over"),
    "epoch_not_compared": Plant("cluster", "sqlite", "a write does not compare who is active"),
    "role_window_ignored": Plant(
        "cluster", "sqlite", "an old active answers from memory", "freeze_active"
    ),
    "takeover_too_soon": Plant(
        *("cluster", "sqlite", "a standby does not wait for the end of the window"),
        "cut_active_from_etcd,cut_active_to_etcd,cut_etcd_to_active",
    ),
}
# Guards that judge and let everything through.
SHADOWS = {
    f"guard_in_shadow_{guard}": Plant("plain", guard, "the guard does not refuse")
    for guard in ("sqlite", "postgres", "mariadb")
}


def find(name, plant, tries, seed):
    """(what found it, worlds) or (None, worlds)."""
    more = ["--guard-mode", "shadow"] if name in SHADOWS else []
    more += ["--only", plant.only] if plant.only else []
    seconds = SECONDS_OF_A_CLUSTER if plant.disk == "cluster" else SECONDS
    if name in PLANTS:
        os.environ["PAWL_MUTANT"] = name
    try:
        for number in range(tries):
            faults = nemesis.play(seed + number, seconds, plant.disk, plant.guard, more)["faults"]
            found = [fault for fault in faults if not fault.startswith("idle")]
            if found:
                return found[0], number + 1
        return None, tries
    finally:
        os.environ.pop("PAWL_MUTANT", None)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--tries", type=int, default=12, help="worlds for each, at most")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if not namespaces.allowed():
        sys.exit(77)
    every = {**PLANTS, **SHADOWS}
    survived = []
    for name in given.names or every:
        found, worlds = find(name, every[name], given.tries, given.seed)
        print(f"{name:<32}{worlds:>3}  {(found or 'NOT FOUND').splitlines()[0]}", flush=True)
        if not found:
            survived.append(name)
    healthy, _ = find("none", Plant("plain", "sqlite", ""), 1, given.seed)
    print(f"{'none':<32}  1  {healthy or 'fine'}")
    sys.exit(1 if survived or healthy else 0)


if __name__ == "__main__":
    main()

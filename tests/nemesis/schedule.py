"""What will be done to a world, and when: made from a seed before anything starts. Pure: the same
seed, the same list.

    world = schedule.profile(seed=17, seconds=60)     # the disk, the guard, the number of clients
    for step in schedule.steps(world): …
        # Step(at=3.141, kind="freeze_client", target="c2", span=1.2, arg=…)

A fault that lasts has a span, within the schedule; when it is over the runner mends it. No two
faults of one family meet on one target, and each kind that the profile names comes at least once.
"""

import collections
import random

Profile = collections.namedtuple("Profile", "seed seconds disk guard clients ttl_ms kinds tls")
Step = collections.namedtuple("Step", "at kind target span arg")
Fault = collections.namedtuple("Fault", "every targets spans family")

# Of one pawld; or several that share an etcd.
DISKS = {"plain": 5, "lossy": 2, "small": 2, "failing": 2, "cluster": 4}
GUARDS = {"sqlite": 6, "postgres": 2, "mariadb": 2, "redis": 2, "etcd": 2}
CLIENTS = 5
RELAYED = 2  # The first clients talk through the relay, the others over a wire that nft cuts.

RELAYED_CLIENTS = [f"c{n}" for n in range(RELAYED)]
WIRED_CLIENTS = [f"c{n}" for n in range(RELAYED, CLIENTS)]
ALL_CLIENTS = RELAYED_CLIENTS + WIRED_CLIENTS

# Mean seconds between two, its targets, how long it lasts in TTLs (None: a moment), what it must
# not meet on one target.
FAULTS = {
    "kill_client": Fault(0.9, ALL_CLIENTS, None, None),
    "kill_pawld": Fault(4.0, ["pawld"], None, None),
    "kill_run": Fault(9.0, ["run"], None, None),
    "kill_child": Fault(9.0, ["child"], None, None),
    "freeze_client": Fault(3.0, ALL_CLIENTS, (0.3, 3.0), "freeze"),
    "freeze_and_restart": Fault(8.0, ALL_CLIENTS, (1.0, 2.0), "freeze"),
    "freeze_pawld": Fault(12.0, ["pawld"], (0.1, 2.0), "freeze"),
    "freeze_run": Fault(15.0, ["run"], (0.3, 2.5), "freeze"),
    "freeze_child": Fault(15.0, ["child"], (0.3, 2.5), "freeze"),
    "cut_both": Fault(9.0, [*WIRED_CLIENTS, "run"], (0.2, 2.5), "wire"),
    "cut_requests": Fault(11.0, [*WIRED_CLIENTS, "run"], (0.2, 2.5), "wire"),
    "cut_replies": Fault(11.0, [*WIRED_CLIENTS, "run"], (0.2, 2.5), "wire"),
    "reset": Fault(9.0, [*WIRED_CLIENTS, "run"], (0.05, 0.5), "wire"),
    "delay": Fault(9.0, RELAYED_CLIENTS, (0.5, 3.0), "relay"),
    "half_open": Fault(9.0, RELAYED_CLIENTS, (0.3, 2.5), "relay"),
    "clock_pawld": Fault(15.0, ["pawld"], None, None),
    "clock_client": Fault(12.0, ALL_CLIENTS, None, None),
    "power_cut": Fault(5.0, ["disk"], None, None),
    "io_error": Fault(5.0, ["disk"], None, None),
    "hang_sync": Fault(7.0, ["disk"], (0.2, 1.5), "disk"),
    "disk_full": Fault(8.0, ["disk"], (0.5, 2.0), "disk"),
    "kill_database": Fault(9.0, ["database"], None, None),
    "strangers": Fault(12.0, ["strangers"], (2.0, 6.0), "crowd"),
    "heavy_readers": Fault(14.0, ["heavy_readers"], (2.0, 5.0), "crowd"),
}
# The same of a cluster. How long they last is in times of `role_ttl`.
_ACTIVE, _ETCD = ["active"], ["etcd"]
CLUSTER_FAULTS = {
    "kill_active": Fault(24.0, _ACTIVE, None, None),
    "kill_standby": Fault(24.0, ["standby"], None, None),
    "hand_over": Fault(32.0, _ACTIVE, None, None),
    "freeze_active": Fault(24.0, _ACTIVE, (1.3, 3.0), "freeze"),
    "cut_active_from_etcd": Fault(42.0, _ACTIVE, (0.5, 3.0), None),
    "cut_active_to_etcd": Fault(54.0, _ACTIVE, (0.5, 3.0), None),
    "cut_etcd_to_active": Fault(54.0, _ACTIVE, (0.5, 3.0), None),
    "cut_active_from_clients": Fault(54.0, _ACTIVE, (0.5, 3.0), None),
    "cut_active_to_clients": Fault(64.0, _ACTIVE, (0.5, 3.0), None),
    "cut_clients_to_active": Fault(64.0, _ACTIVE, (0.5, 3.0), None),
    "cut_machine": Fault(48.0, _ACTIVE, (0.5, 3.0), None),
    "kill_leader": Fault(38.0, _ETCD, None, None),
    "freeze_leader": Fault(42.0, _ETCD, (0.5, 3.0), "freeze"),
    "cut_leader": Fault(48.0, _ETCD, (0.5, 3.0), None),
    "cut_leader_to_followers": Fault(58.0, _ETCD, (0.5, 3.0), None),
    "cut_followers_to_leader": Fault(58.0, _ETCD, (0.5, 3.0), None),
    "etcd_quota": Fault(120.0, _ETCD, (0.5, 2.0), "space"),
    "etcd_disk_full": Fault(120.0, _ETCD, (0.5, 2.0), "space"),
    "restart_everything": Fault(120.0, ["everything"], None, None),
}
# What else is done to a world with a cluster, less often: a client must live through a takeover.
OF_CLIENTS = (
    "kill_client",
    "clock_client",
    "freeze_client",
    "kill_run",
    "kill_child",
    "freeze_run",
    "freeze_child",
    "kill_database",
)
LESS_OFTEN = 3
SHARE_MIN = 0.25
EVERY_FAULT = {**FAULTS, **CLUSTER_FAULTS}
ROLE_TTL_MS = 1500
# Some of the leases outlive a takeover, and some do not.
TTL_MS_OF_CLUSTER = (2000, 3000, 4500)
# A database that only listens on loopback is not reached from the machine of a client.
GUARDS_OF_CLUSTER = {"sqlite": 6, "postgres": 2}
# These take nothing away from anyone who behaves: in a world with nothing else, no lease is lost.
CROWDS = ("strangers", "heavy_readers")
TTL_MS = (800, 1000, 1400)
TTL_MS_OF_CROWDS = 4000  # A worker's leases have half of it at least.
TLS = 0.25  # share of the worlds
OF_DISK = {
    "plain": [],
    "lossy": ["power_cut"],
    "failing": ["io_error", "hang_sync"],
    "small": ["disk_full"],
}
CLOCKS = 3  # How many time namespaces there are to be started in, beside the machine's own.


def profile(seed, seconds, disk=None, guard=None, kinds=None):
    """What the seed does not decide may be given."""
    dice = random.Random(f"{seed}/profile")
    disk = disk or _weighed(dice, _disks_for(kinds))
    guard = guard or _weighed(dice, GUARDS_OF_CLUSTER if disk == "cluster" else GUARDS)
    possible = [kind for kind in EVERY_FAULT if _possible(kind, disk, guard)]
    wanted = [kind for kind in possible if kinds is None or kind in kinds]
    ttl_ms = dice.choice(TTL_MS_OF_CLUSTER if disk == "cluster" else TTL_MS)
    ttl_ms = TTL_MS_OF_CROWDS if only_crowds(wanted) else ttl_ms
    tls = random.Random(f"{seed}/tls").random() < TLS
    return Profile(seed, seconds, disk, guard, CLIENTS, ttl_ms, tuple(wanted), tls)


def _disks_for(kinds):
    """Those on which one of the kinds is possible."""
    possible = {
        disk: weight
        for disk, weight in DISKS.items()
        if any(_possible(kind, disk, "postgres") for kind in kinds or ["kill_client"])
    }
    return possible or DISKS


def _weighed(dice, weights):
    return dice.choices(list(weights), list(weights.values()))[0]


def only_crowds(kinds):
    return bool(kinds) and set(kinds) <= set(CROWDS)


def _possible(kind, disk, guard):
    if (kind in CLUSTER_FAULTS) != (disk == "cluster") and kind not in OF_CLIENTS:
        return False
    if any(kind in kinds for kinds in OF_DISK.values()):
        return kind in OF_DISK[disk]
    return kind != "kill_database" or guard != "sqlite"


def steps(world):
    """In order of time."""
    busy = collections.defaultdict(list)  # (family, target) -> [(from, to)]
    made = [step for kind in world.kinds for step in _of_kind(world, kind, busy)]
    return sorted(made)


def _of_kind(world, kind, busy):
    every = EVERY_FAULT[kind].every
    if world.disk == "cluster":
        every *= LESS_OFTEN if kind in OF_CLIENTS else _share(world)
    dice = random.Random(f"{world.seed}/{kind}")
    at = dice.uniform(0.05, 0.5) * min(every, world.seconds)
    while at < world.seconds:
        step = _one(world, kind, at, dice, busy)
        if step:
            yield step
        at += dice.expovariate(1 / every) if step else 0.05 * every


def _share(world):
    """A cluster that only few kinds of faults meet has as many faults as others, if it has the time
    to take over in between."""
    possible = [kind for kind in CLUSTER_FAULTS if _possible(kind, world.disk, world.guard)]
    wanted = [kind for kind in possible if kind in world.kinds]
    return max(len(wanted) / len(possible), SHARE_MIN)


def _one(world, kind, at, dice, busy):
    """None: every possible target has a fault of this family already."""
    fault = EVERY_FAULT[kind]
    unit = ROLE_TTL_MS if kind in CLUSTER_FAULTS else world.ttl_ms
    span = round(dice.uniform(*fault.spans) * unit / 1000, 3) if fault.spans else 0.0
    at = round(max(0.0, min(at, world.seconds - span)), 3)
    free = [
        target
        for target in fault.targets
        if not fault.family or not _met(busy[fault.family, target], at, at + span)
    ]
    if not free:
        return None
    target = dice.choice(free)
    busy[fault.family, target].append((at, at + span))
    return Step(at, kind, target, span, dice.randrange(1 << 31))


def _met(intervals, begin, end):
    return any(begin <= to and since <= end for since, to in intervals)

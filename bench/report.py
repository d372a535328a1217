"""Turns the benchmark's figures into tables, and into one line per target of the project."""

import dataclasses
import statistics

# A cell during which other programs used more of the machine than this many cores says more about
# them.
FOREIGN_MAX = 0.25
# With fewer quiet cells than this, the noisy ones are used too, and the row is marked.
QUIET_MIN = 3

UNITS = {
    "cycle": "acquire+release cycles",
    "handoff": "handoffs on one contended lock",
    "renew": "renewals",
}
# Whose share of which peer, for each workload and number of connections.
TARGETS = [
    ("cycle", 64, "pawl", "redis-always", 1.5),
    ("cycle", 256, "pawl", "redis-always", 1.5),
    ("cycle", 64, "pawl", "echo+log", 0.8),
    ("cycle", 256, "pawl", "echo+log", 0.8),
    ("handoff", 64, "pawl", "redis-always", 1.3),
    ("renew", 64, "pawl", "echo", 0.7),
    ("renew", 256, "pawl", "echo", 0.7),
]
CLIENT_TARGETS = [("cycle", 64, "libpawl", "pawl-threads", 0.8)]


@dataclasses.dataclass
class Verdict:
    target: str
    value: float
    limit: float
    met: bool
    noisy: bool = False
    note: str = ""


@dataclasses.dataclass
class Row:
    """The cells of one peer under one workload at one number of connections, over all rounds."""

    cells: list
    used: list
    noisy: bool

    def median(self, key, every=False):
        return statistics.median(cell[key] for cell in (self.cells if every else self.used))

    @property
    def quiet_count(self):
        return sum(map(quiet, self.cells))

    def range(self, key):
        values = [cell[key] for cell in self.used]
        return f"{min(values):,.0f}..{max(values):,.0f}"


def quiet(cell):
    """Judged by what others did, never by the result."""
    return "failed" not in cell and cell["foreign_cores"] + cell["stolen_cores"] <= FOREIGN_MAX


def rows(cells):
    grouped = {}
    for cell in cells:
        if "failed" not in cell and cell["operations"]:
            grouped.setdefault((cell["workload"], cell["connections"], cell["peer"]), []).append(
                cell
            )
    made = {}
    for key, group in grouped.items():
        undisturbed = [cell for cell in group if quiet(cell)]
        noisy = len(undisturbed) < min(QUIET_MIN, len(group))
        made[key] = Row(group, group if noisy else undisturbed, noisy)
    return made


def ratio(made, workload, connections, peer, other):
    mine, theirs = made.get((workload, connections, peer)), made.get((workload, connections, other))
    if mine is None or theirs is None:
        return None
    # Like with like: quiet cells of one beside disturbed cells of the other would compare the
    # neighbours.
    every = mine.noisy or theirs.noisy
    return mine.median("rate", every) / theirs.median("rate", every)


def table(header, lines):
    widths = [max(len(str(line[i])) for line in [header, *lines]) for i in range(len(header))]

    def row(line):
        first, *rest = (str(cell).rjust(width) for cell, width in zip(line, widths))
        return "| " + " | ".join([str(line[0]).ljust(widths[0]), *rest]) + " |"

    print(row(header))
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for line in lines:
        print(row(line))


def speed(cells):
    made = rows(cells)
    for workload, unit in UNITS.items():
        counts = sorted({key[1] for key in made if key[0] == workload})
        for connections in counts:
            print(f"\n## {unit}, {connections} connection{'s' * (connections > 1)}\n")
            speed_table(made, workload, connections, ("redis-always", "echo+log", "echo"))
    quiet_note(made)
    return [verdict for target in TARGETS for verdict in speed_verdict(made, *target)]


def client(got):
    made = rows(got["cells"])
    print(
        "\n## one pawl::Client shared by 64 threads, beside 64 connections with a thread each, and "
        "with one for all\n"
    )
    speed_table(made, "cycle", 64, ("pawl-threads", "pawl"))
    quiet_note(made)
    hold_table(got["hold"])
    return [verdict for target in CLIENT_TARGETS for verdict in speed_verdict(made, *target)]


def hold_table(got):
    if "failed" in got:
        print(f"\nholding leases: not measured: {got['failed']}")
        return
    print(
        f"\n## {got['leases']:,} leases with a TTL of {got['ttl_s']} s held by one pawl::Client, "
        f"for {got['elapsed_s']:.0f} s\n"
    )
    share = 100 / got["elapsed_s"]
    table(
        ("what", "value"),
        [
            ("taken in", f"{got['taken_s']:.1f} s"),
            ("still held (lost)", f"{got['held']:,} ({got['lost']:,})"),
            ("the client's threads, connections", f"{got['threads']}, {got['connections']}"),
            ("renewals, in MRENEW commands", f"{got['renewals']:,}, {got['commands']:,}"),
            (
                "CPU time of the client",
                f"{got['client_cpu_s']:.2f} s ({got['client_cpu_s'] * share:.1f} % of a core)",
            ),
            (
                "CPU time of pawld",
                f"{got['server_cpu_s']:.2f} s ({got['server_cpu_s'] * share:.1f} % of a core)",
            ),
        ],
    )


def quiet_note(made):
    every = [cell for row in made.values() for cell in row.cells]
    print(
        f"\nMedians over the quiet cells: {sum(map(quiet, every))} of {len(every)} "
        f"(other programs and the hypervisor took at most {FOREIGN_MAX} core). "
        f"`~`: fewer than {QUIET_MIN} were quiet, so all count."
    )


def speed_table(made, workload, connections, others):
    def share(peer, other):
        value = ratio(made, workload, connections, peer, other)
        return "-" if value is None else f"{value:.2f}"

    lines = []
    for (_, _, peer), row in made.items():
        if (row.cells[0]["workload"], row.cells[0]["connections"]) != (workload, connections):
            continue
        lines.append(
            (
                peer,
                f"{'~' * row.noisy}{row.median('rate'):,.0f}",
                row.range("rate"),
                len(row.used),
                f"{row.median('p50_us') / 1000:.2f}",
                f"{row.median('p99_us') / 1000:.2f}",
                f"{row.median('server_us_per_op'):.1f}",
                f"{row.median('client_cores'):.2f}",
                *(share(peer, other) for other in others),
                sum(cell["errors"] for cell in row.cells),
            )
        )
    lines.sort(key=lambda line: line[0])
    table(
        (
            "peer",
            "per second",
            "min..max",
            "n",
            "p50 ms",
            "p99 ms",
            "server us/op",
            "client cores",
            *(f"x {other}" for other in others),
            "errors",
        ),
        lines,
    )


def speed_verdict(made, workload, connections, peer, other, limit):
    value = ratio(made, workload, connections, peer, other)
    if value is None:
        return []
    mine, theirs = made[workload, connections, peer], made[workload, connections, other]
    return [
        Verdict(
            f"{UNITS[workload]}, {connections} connections, {peer} x {other}: at least {limit}",
            round(value, 3),
            limit,
            value >= limit,
            mine.noisy or theirs.noisy,
            f" (quiet cells: {mine.quiet_count} and {theirs.quiet_count})",
        )
    ]


def memory(got):
    print(
        f"\n## memory and restart, {got['locks']:,} held locks ({got['name_bytes']}-byte names, "
        f"{got['owner_bytes']}-byte owners)\n"
    )
    table(
        ("what", "value"),
        [
            ("resident before", f"{got['rss_before'] / 1e6:,.1f} MB"),
            (
                "resident after (at most, meanwhile)",
                f"{got['rss_after'] / 1e6:,.1f} MB ({got['rss_peak'] / 1e6:,.1f} MB)",
            ),
            ("bytes per held lock", f"{got['bytes_per_lock']:.0f}"),
            (
                "resident after a restart (at most, meanwhile)",
                f"{got['rss_restarted'] / 1e6:,.1f} MB ({got['rss_peak_restarted'] / 1e6:,.1f} MB)",
            ),
            ("bytes per held lock after a restart", f"{got['bytes_per_lock_restarted']:.0f}"),
            ("filled in (pipelined, durable)", f"{got['fill_s']:.1f} s"),
            ("store on disk", f"{got['store_bytes'] / 1e6:,.0f} MB"),
            (
                "kill -9, then start until it answers (CPU time of that)",
                f"{got['restart_s']:.2f} s ({got['restart_cpu_s']:.2f} s)",
            ),
            ("a plain sequential read of the same bytes", f"{got['read_s']:.2f} s"),
            ("locks found after the restart", f"{got['locks_restarted']:,}"),
            *((f"pawld says: {name}", f"{value:,}") for name, value in got["breakdown"].items()),
        ],
    )
    scale = got["locks"] / 1_000_000
    return [
        Verdict(
            "bytes of memory per held lock: at most 300",
            round(got["bytes_per_lock"], 1),
            300,
            got["bytes_per_lock"] <= 300,
        ),
        Verdict(
            f"seconds to restart with {got['locks']:,} leases: about {3 * scale:.1f}",
            round(got["restart_s"], 2),
            3 * scale,
            got["restart_s"] <= 3 * scale * 1.1,
        ),
    ]


def instructions(got):
    print("\n## instructions of an acquire+release cycle, without sockets and disk (callgrind)\n")
    table(
        ("held locks", "instructions per cycle"),
        [(f"{int(held):,}", f"{count:,.0f}") for held, count in got["per_cycle"].items()],
    )
    counts = list(got["per_cycle"].items())
    (few, base), (many, most) = counts[0], counts[-1]
    return [
        Verdict(
            f"instructions per cycle with {int(many):,} held, x {int(few):,} held: at most 1.2",
            round(most / base, 3),
            1.2,
            most / base <= 1.2,
        )
    ]


def verdicts(found):
    print("\n## verdicts\n")
    for verdict in found:
        mark = "unclear" if verdict.noisy else "met" if verdict.met else "MISSED"
        print(f"{mark:<8} {verdict.target}: {verdict.value:,}{verdict.note}")
    if any(verdict.noisy for verdict in found):
        print(
            "\nunclear: others disturbed too many cells for either answer; run it again on a "
            "quieter machine."
        )

#!/usr/bin/python3
"""A flood of HTTP never costs a lease that is renewed: lists are made in the turns of the same
loop, but only so many of them in one. Leases with a short TTL are renewed over RESP while many
clients ask for the longest lists there are; none is lost."""

import multiprocessing
import socket
import threading

from pawltest import harness
from pawltest.harness import fields

FLOODERS = 4  # processes, each with PER_FLOODER connections that always have a request under way
PER_FLOODER = 16
PAGES = 10  # per connection
LEASES = 200
# The test's own processes must find time to renew on a busy machine; pawld needs far less.
TTL = 4000

REQUEST = b"GET /v1/locks?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"


def read_answer(stream):
    status = int(stream.readline().split()[1])
    length = 0
    while True:
        line = stream.readline()
        if line == b"\r\n":
            break
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    stream.read(length)
    return status


def flood(port, answers):
    peers = [
        socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE * 5)
        for _ in range(PER_FLOODER)
    ]
    streams = [peer.makefile("rb") for peer in peers]
    statuses = {}
    for _ in range(PAGES):
        for peer in peers:
            peer.sendall(REQUEST)
        for stream in streams:
            status = read_answer(stream)
            statuses[status] = statuses.get(status, 0) + 1
    for end in streams + peers:
        end.close()
    answers.put(statuses)


class FloodTest(harness.PawldCase):
    def test_flood_of_requests_costs_no_renewed_lease(self):
        server = self.own_pawld()
        client = self.client(3, server)
        names = ["list/" + "x" * 200 + f"/{n}" for n in range(1000)]
        for grant in client.pipeline(
            [["ACQUIRE", name, "TTL", 600000, "OWNER", "someone"] for name in names]
        ):
            self.assertGranted(grant)
        leases = [
            fields(grant)["lease"]
            for grant in client.pipeline(
                [["ACQUIRE", f"kept/{n}", "TTL", TTL] for n in range(LEASES)]
            )
        ]
        lost, rounds, over = [], [], threading.Event()

        def renew():
            with server.client(3) as renewer:
                while not over.is_set():
                    left = renewer.call("MRENEW", *leases)
                    lost.extend(lease for lease, ms in zip(leases, left) if ms < 0)
                    rounds.append(min(left))
                    over.wait(TTL / 8000)

        renewer = threading.Thread(target=renew)
        renewer.start()
        answers = multiprocessing.Queue()
        flooders = [
            multiprocessing.Process(target=flood, args=(server.http_port, answers), daemon=True)
            for _ in range(FLOODERS)
        ]
        try:
            for flooder in flooders:
                flooder.start()
            statuses = {}
            for _ in flooders:
                for status, count in answers.get(timeout=harness.PATIENCE * 4).items():
                    statuses[status] = statuses.get(status, 0) + count
        finally:
            over.set()
            renewer.join()
            for flooder in flooders:
                flooder.kill()
                flooder.join()
        self.assertEqual(lost, [])
        self.assertGreater(len(rounds), 3, "renewals happened during the flood")
        self.assertEqual(sum(statuses.values()), FLOODERS * PER_FLOODER * PAGES)
        self.assertLessEqual(set(statuses), {200, 503})
        self.assertGreater(statuses.get(200, 0), 0)
        print(
            f"{statuses} lists answered beside {len(rounds)} rounds of {LEASES} renewals; none lost"
        )


if __name__ == "__main__":
    harness.main()

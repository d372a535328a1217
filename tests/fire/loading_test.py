"""A pawld that takes long to read its data: it answers from the first moment, and says that it is
loading."""

import concurrent.futures
import signal

from pawltest.disk_faults import FireCase, faults, harness, wait_until
from pawltest.harness import fields
from pawltest.web import Web

LEASES = 20_000
TTL = 600000


class LoadingTest(FireCase):
    def setUp(self):
        super().setUp()
        self.server = self.own_pawld()
        with self.server.client(3) as client:
            grants = client.pipeline(["ACQUIRE", f"lock/{n}", "TTL", TTL] for n in range(LEASES))
        self.leases = [grant["lease"] for grant in grants]
        self.server.kill()
        self.gate = self.server.dir / "slow"
        self.server.environment = faults(self.server, read_gate=self.gate)

    def launch(self, read_ms):
        """Each read of the data takes so long while the gate is there, and pawld answers in
        between."""
        self.gate.write_text(str(read_ms))
        self.server.launch()

    def early_client(self, *questions):
        """Connected before the data is read, and asking in one breath; the client and what it is
        answered."""
        wait_until(self.server.port_file.exists, "pawld listens")
        self.server.port = int(self.server.port_file.read_text().split()[0])
        client = self.client(2, self.server)
        return client, client.pipeline(questions)

    def all_there(self, count):
        with self.server.client(3) as client:
            self.assertEqual(client.call("STATUS")["leases"], count)
            for at in range(0, len(self.leases), 1000):
                some = self.leases[at : at + 1000]
                self.assertEqual(client.call("MRENEW", *some), [TTL] * len(some))

    def test_commands_during_loading_get_loading_and_work_afterwards(self):
        self.launch(read_ms=100)
        client, (status, pong, refused) = self.early_client(
            ["STATUS"], ["PING"], ["ACQUIRE", "new", "TTL", TTL]
        )
        self.assertEqual((fields(status)["role"], fields(status)["state"]), ("loading", "loading"))
        self.assertEqual(pong, "PONG")
        self.assertError(refused, "LOADING")
        self.gate.unlink()
        wait_until(lambda: fields(client.call("STATUS"))["role"] == "active", "it is read")
        self.acquire(client, "new")
        self.assertEqual(client.call("RELEASE", self.leases.pop()), 1)
        self.all_there(LEASES)

    def test_probes_and_metrics_report_loading(self):
        self.launch(read_ms=300)
        wait_until(self.server.port_file.exists, "pawld listens")
        port, http_port = (int(line) for line in self.server.port_file.read_text().split())
        self.server.port = port
        # All at once: pawld looks at its connections only some times while it reads.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = [pool.submit(Web(http_port).get, path) for path in ("/readyz", "/metrics")]
            ready, scrape = (question.result() for question in asked)
        scrape = scrape.body.decode()
        client, web = self.client(2, self.server), Web(http_port)
        self.assertEqual((ready.status, ready.code), (503, "loading"))
        for sample in ("pawl_ready 0", "pawl_leader 0", "pawl_pauses_seconds_total 0"):
            self.assertIn(f"\n{sample}\n", scrape)
        self.gate.unlink()
        wait_until(lambda: web.get("/readyz").status == 200, "it is read")
        self.assertEqual(fields(client.call("STATUS"))["state"], "granting")

    def test_stop_during_loading_changes_nothing(self):
        self.launch(read_ms=100)
        _, (status,) = self.early_client(["STATUS"])
        self.assertEqual(fields(status)["role"], "loading")
        self.server.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(), 0)
        self.server.environment = {}
        self.server.start()
        self.all_there(LEASES)


if __name__ == "__main__":
    harness.main()

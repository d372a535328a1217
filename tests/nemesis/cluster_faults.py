"""What can be done to a world with a cluster: one method for each kind in schedule.CLUSTER_FAULTS.
What is done to clients is inherited."""

import concurrent.futures
import time

from cluster_processes import CLIENT_HOSTS, ETCDS, PAWLDS
from faults import Faults
from hosts import both_ways, one_way

PATIENT = 60.0  # Seconds until a pawld that was told to stop has ended, and another one serves.
LOOK_EVERY = 0.05
ASKED_WITHIN = 4.0  # Seconds from a takeover until somebody has a question for the frozen one.
DOWN_AT_MOST = 1.0  # Seconds until what was killed is started again.
JUNK_OF_A_FULL_DISK = 12  # So much that the file of etcd must grow.


class ClusterFaults(Faults):
    def __init__(self, world):
        super().__init__(world)
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self._space = None  # A future: etcd is being filled or freed.

    # -- pawld

    def kill_active(self, step):
        return self._kill(self.world.active(), step)

    def kill_standby(self, step):
        return self._kill(self.world.standby(step.arg), step)

    def _kill(self, pawld, step):
        if pawld is None:
            return False
        pawld.kill()
        self.world.later(DOWN_AT_MOST * (step.arg % 100) / 100, pawld.launch)
        return True

    def hand_over(self, step):
        del step
        pawld = self.world.active()
        if pawld is None:
            return False
        pawld.process.terminate()
        pawld.leaves = True
        self._await_end(pawld, time.monotonic() + PATIENT)
        return True

    def _await_end(self, pawld, until):
        """It was told to stop: it ends with 0, and is started again."""
        if not pawld.leaves:
            return  # It was killed meanwhile.
        code = pawld.process.poll()
        if code is None and time.monotonic() < until:
            return self.world.later(LOOK_EVERY, lambda: self._await_end(pawld, until))
        if code != 0:
            raise AssertionError(f"{pawld.name} was told to stop: {code}\n{pawld.log()[-3000:]}")
        pawld.kill()
        pawld.launch()

    def freeze_active(self, step):
        """Most of them until another one is active, and a question waits that the frozen one would
        answer wrongly: then it wakes up, and believes to be active. The others for the span,
        whoever is active by then."""
        pawld = self.world.active()
        if pawld is None:
            return False
        pawld.freeze()
        span = PATIENT if step.arg % 4 else step.span
        self._thaw_late(pawld, self.world.epoch, time.monotonic() + span)
        return True

    def _thaw_late(self, pawld, epoch, until):
        if not pawld.frozen:
            return
        deposed, now = self.world.epoch > epoch, time.monotonic()
        if deposed:
            until = min(until, now + ASKED_WITHIN) if not pawld.deposed else until
            pawld.deposed = True
        if now < until and not (deposed and self.world.rivals[pawld.name].asked >= epoch):
            return self.world.later(LOOK_EVERY, lambda: self._thaw_late(pawld, epoch, until))
        if deposed:
            self.world.done["two_actives"] += 1
        pawld.thaw()

    # -- the network

    def cut_active_from_etcd(self, step):
        return self._cut_active(step, both_ways, ETCDS)

    def cut_active_to_etcd(self, step):
        return self._cut_active(step, one_way, ETCDS)

    def cut_etcd_to_active(self, step):
        return self._cut_active(step, _towards, ETCDS)

    def cut_active_from_clients(self, step):
        return self._cut_active(step, both_ways, CLIENT_HOSTS)

    def cut_active_to_clients(self, step):
        return self._cut_active(step, one_way, CLIENT_HOSTS)

    def cut_clients_to_active(self, step):
        return self._cut_active(step, _towards, CLIENT_HOSTS)

    def _cut_active(self, step, ways, others):
        pawld = self.world.active()
        return pawld is not None and self._cut_hosts(step, ways([pawld.name], others))

    def cut_machine(self, step):
        """The active pawld and an etcd beside it, from everything else."""
        pawld = self.world.active()
        if pawld is None:
            return False
        inside = [pawld.name, ETCDS[PAWLDS.index(pawld.name)]]
        outside = [name for name in [*ETCDS, *PAWLDS, *CLIENT_HOSTS] if name not in inside]
        return self._cut_hosts(step, both_ways(inside, outside))

    def cut_leader(self, step):
        return self._cut_leader(step, both_ways)

    def cut_leader_to_followers(self, step):
        return self._cut_leader(step, one_way)

    def cut_followers_to_leader(self, step):
        return self._cut_leader(step, _towards)

    def _cut_leader(self, step, ways):
        """From the other etcd; every pawld still reaches it."""
        node = self.world.etcd.leader()
        if node is None:
            return False
        return self._cut_hosts(step, ways([node.name], [n for n in ETCDS if n != node.name]))

    def _cut_hosts(self, step, ways):
        self.world.hosts.cut(ways)
        self.world.later(step.span, lambda: self.world.hosts.mend(ways))
        return True

    # -- etcd

    def kill_leader(self, step):
        node = self.world.etcd.leader()
        if node is None:
            return False
        node.kill()
        self.world.later(DOWN_AT_MOST * (step.arg % 100) / 100, node.start)
        return True

    def freeze_leader(self, step):
        node = self.world.etcd.leader()
        if node is None:
            return False
        node.freeze()
        self.world.later(step.span, node.thaw)
        return True

    def etcd_quota(self, step):
        """It takes no writes any more, heartbeats of pawld included."""
        if self.space_is_busy():
            return False
        self._space = self._pool.submit(self._fill_and_free, step.span)
        return True

    def _fill_and_free(self, span):
        began = time.monotonic()
        while not self.world.etcd.fill():
            time.sleep(LOOK_EVERY)
        self.world.note(f"etcd is full after {time.monotonic() - began:.1f} s")
        self.world.done["etcd_alarms"] += 1
        time.sleep(span)
        self._free()

    def _free(self):
        """Somebody of the members may be away at the moment."""
        began = time.monotonic()
        while not self.world.etcd.free():
            time.sleep(LOOK_EVERY)
        self.world.note(f"etcd has space again after {time.monotonic() - began:.1f} s")

    def etcd_disk_full(self, step):
        node = self.world.etcd.nodes[ETCDS[-1]]
        if self.space_is_busy() or not node.runs() or self.world.etcd.leader() is None:
            return False
        self.world.etcd.fill_disk()
        self._space = self._pool.submit(self.world.etcd.put_junk, JUNK_OF_A_FULL_DISK)
        self.world.later(step.span, self._free_disk)
        return True

    def _free_disk(self):
        if self._is_at_work():
            return self.world.later(LOOK_EVERY, self._free_disk)
        node = self.world.etcd.nodes[ETCDS[-1]]
        if node.process is not None and node.process.poll() is not None:
            self.world.done["etcd_ended_by_a_full_disk"] += 1
        self.world.etcd.free_disk()
        node.kill()
        node.start()
        self._space = self._pool.submit(self._free)

    def space_is_busy(self):
        """Whether one of these faults lasts."""
        return self.world.etcd.disk_is_full or self._is_at_work()

    def _is_at_work(self):
        """Filling and freeing etcd takes seconds, and is done beside the rest."""
        if self._space is not None and self._space.done():
            self._space.result()  # Raises what went wrong.
            self._space = None
        return self._space is not None

    def restart_everything(self, step):
        for server in [*self.world.pawlds.values(), *self.world.etcd.nodes.values()]:
            server.kill()
        self.world.later(DOWN_AT_MOST * (step.arg % 100) / 100, self.world.start_everything)


def _towards(these, those):
    return one_way(those, these)

"""What can be done to a world: one method for each kind in schedule.FAULTS. Each returns False when
there was nobody to do it to; what lasts is mended later by the world, in step.span seconds. """

import signal

from clocks import boot_now


class Faults:
    def __init__(self, world):
        self.world = world

    def meet(self, step):
        """Whether it happened."""
        return getattr(self, step.kind)(step) is not False

    def kill_client(self, step):
        self.world.clients[step.target].kill()
        self.world.clients[step.target].start()

    def clock_client(self, step):
        self.world.clients[step.target].clock = step.arg % len(self.world.clocks)
        self.kill_client(step)

    def kill_pawld(self, step):
        self.world.kill_pawld()
        self.world.later(0.3 * (step.arg % 100) / 100, self.world.start_pawld)

    def clock_pawld(self, step):
        self.world.server.clock = step.arg % len(self.world.clocks)
        self.world.kill_pawld()
        self.world.start_pawld()

    def power_cut(self, step):
        if self.world.disk.dark or self.world.server.process is None:
            return False
        self.world.disk.cut(step.arg)
        self.world.later(1.0, lambda: self._dark(step.arg))

    def _dark(self, seed):
        """It ends by itself at its next write, unless nobody wants any."""
        if self.world.disk.dark:
            self.world.kill_pawld()
            self.world.start_pawld(seed)

    def io_error(self, step):
        self.world.disk.arm(step.arg)
        self.world.kill_pawld()
        self.world.start_pawld()

    def hang_sync(self, step):
        if self.world.server.process is None:
            return False  # A start would hang with it, and with that all the rest of the schedule.
        self.world.disk.hang()
        self.world.later(step.span, self.world.disk.mend)
        return True

    def disk_full(self, step):
        self.world.disk.fill((0, 40 << 10, 200 << 10)[step.arg % 3])
        self.world.later(step.span, self.world.disk.mend)

    def kill_run(self, step):
        return self.world.run.send("run", signal.SIGKILL)

    def kill_child(self, step):
        return self.world.run.send("child", signal.SIGKILL)

    def freeze_run(self, step):
        return self._freeze_run(step)

    def freeze_child(self, step):
        return self._freeze_run(step)

    def _freeze_run(self, step):
        if not self.world.run.send(step.target, signal.SIGSTOP):
            return False
        self.world.later(step.span, self.world.run.thaw)
        return True

    def freeze_client(self, step):
        """Most of them in the middle of their work."""
        client = self.world.clients[step.target]
        if step.arg % 4 and not client.holds():
            return False
        client.freeze()
        self.world.later(step.span, client.thaw)
        return True

    def freeze_and_restart(self, step):
        """A holder stands still while pawld is killed and comes back: what it was promised must
        last as long."""
        client = self.world.clients[step.target]
        if not client.holds():
            return False
        client.freeze()
        self.world.later(step.span, client.thaw)
        self.world.kill_pawld()
        self.world.start_pawld()
        return True

    def freeze_pawld(self, step):
        if self.world.server.process is None or self.world.server.process.poll() is not None:
            return False
        self.world.server.process.send_signal(signal.SIGSTOP)
        self.world.frozen_since = boot_now()
        self.world.later(step.span, self._thaw_pawld)
        return True

    def _thaw_pawld(self):
        if self.world.server.process is not None:
            self.world.server.process.send_signal(signal.SIGCONT)
        self.world.note_pause()

    def cut_both(self, step):
        return self._cut(step, requests=True, replies=True)

    def cut_requests(self, step):
        return self._cut(step, requests=True, replies=False)

    def cut_replies(self, step):
        return self._cut(step, requests=False, replies=True)

    def _cut(self, step, **ways):
        holds = (
            self.world.clients[step.target].holds
            if step.target in self.world.clients
            else self.world.run.child
        )
        if step.arg % 4 and not holds():
            return False
        self.world.wire.cut(step.target, **ways)
        self.world.later(step.span, lambda: self.world.wire.mend(step.target))
        return True

    def reset(self, step):
        self.world.wire.reset(step.target)
        self.world.later(step.span, lambda: self.world.wire.mend(step.target))

    def delay(self, step):
        # Half of them are short enough for a client to stay on the connection.
        self.world.relays[step.target].delay(
            (0.02 + step.arg % 60 / 1000) if step.arg % 2 else (0.1 + step.arg % 420 / 1000)
        )
        self.world.later(step.span, lambda: self.world.relays[step.target].delay(0))

    def half_open(self, step):
        if step.arg % 4 and not self.world.clients[step.target].holds():
            return False
        relay = self.world.relays[step.target]
        # Its replies get slow before it falls silent, as networks do; not so slow that a client
        # would give it up.
        relay.delay(0, self.world.profile.ttl_ms / 12000)
        slow = 0.5 * self.world.profile.ttl_ms / 1000
        self.world.later(slow, lambda: relay.hold(True))
        self.world.later(slow + step.span, lambda: self._mend_relay(step))
        return True

    def _mend_relay(self, step):
        if step.arg % 2:
            self.world.relays[step.target].reset()
        self.world.relays[step.target].hold(False)
        self.world.relays[step.target].delay(0)

    def strangers(self, step):
        return self._crowd(step, self.world.strangers)

    def heavy_readers(self, step):
        return self._crowd(step, self.world.heavy_readers)

    def _crowd(self, step, crowd):
        if crowd.process is not None:
            return False  # The machine is slow, and the one before has not been ended yet.
        crowd.start(step)
        self.world.later(step.span, crowd.stop)
        return True

    def kill_database(self, step):
        self.world.guard.crash()
        self.world.guard.start()

#!/usr/bin/python3
"""The schedule is a function of the seed, and does what its profile says."""

import collections
import unittest

import schedule


class ScheduleTest(unittest.TestCase):
    def test_the_same_seed_gives_the_same_steps(self):
        for seed in range(20):
            world = schedule.profile(seed, 30)
            self.assertEqual(world, schedule.profile(seed, 30))
            self.assertEqual(schedule.steps(world), schedule.steps(world))

    def test_another_seed_gives_other_steps(self):
        lists = {
            tuple(schedule.steps(schedule.profile(seed, 30, "plain", "sqlite")))
            for seed in range(20)
        }
        self.assertEqual(len(lists), 20)

    def test_every_requested_kind_occurs(self):
        for seed in range(50):
            for disk in schedule.DISKS:
                world = schedule.profile(seed, 20, disk, "postgres")
                self.assertEqual(
                    {step.kind for step in schedule.steps(world)}, set(world.kinds), (seed, disk)
                )

    def test_every_step_is_within_the_run(self):
        for seed in range(50):
            for step in schedule.steps(schedule.profile(seed, 15)):
                self.assertGreaterEqual(step.at, 0)
                self.assertLessEqual(step.at + step.span, 15.001, step)

    def test_faults_of_one_family_do_not_overlap_on_a_target(self):
        for seed in range(50):
            lasting = collections.defaultdict(list)
            for step in schedule.steps(schedule.profile(seed, 60)):
                family = schedule.EVERY_FAULT[step.kind].family
                if family:
                    lasting[family, step.target].append((step.at, step.at + step.span))
            for intervals in lasting.values():
                for (_, end), (begin, _) in zip(sorted(intervals), sorted(intervals)[1:]):
                    self.assertLess(end, begin)

    def test_faults_match_the_disk_and_the_database(self):
        self.assertIn("power_cut", schedule.profile(1, 30, "lossy", "sqlite").kinds)
        self.assertNotIn("power_cut", schedule.profile(1, 30, "plain", "sqlite").kinds)
        self.assertNotIn("kill_database", schedule.profile(1, 30, "plain", "sqlite").kinds)
        self.assertIn("kill_database", schedule.profile(1, 30, "plain", "mariadb").kinds)

    def test_a_cluster_with_few_kinds_of_faults_has_more_of_each(self):
        def freezes(kinds):
            worlds = [schedule.profile(seed, 60, "cluster", "sqlite", kinds) for seed in range(20)]
            steps = [step for world in worlds for step in schedule.steps(world)]
            return sum(step.kind == "freeze_active" for step in steps)

        self.assertGreater(freezes(["freeze_active"]), 2 * freezes(None))

    def test_a_cluster_has_faults_of_its_own_and_of_its_clients(self):
        kinds = set(schedule.profile(1, 30, "cluster", "postgres").kinds)
        self.assertEqual(kinds, {*schedule.CLUSTER_FAULTS, *schedule.OF_CLIENTS})
        self.assertFalse(set(schedule.profile(1, 30, "plain").kinds) & set(schedule.CLUSTER_FAULTS))

    def test_the_disk_fits_the_requested_kinds(self):
        for seed in range(20):
            self.assertEqual(schedule.profile(seed, 30, kinds=["kill_active"]).disk, "cluster")
            self.assertEqual(schedule.profile(seed, 30, kinds=["io_error"]).disk, "failing")

    def test_only_requested_kinds_occur(self):
        world = schedule.profile(1, 30, "plain", "sqlite", kinds=["kill_pawld"])
        self.assertEqual({step.kind for step in schedule.steps(world)}, {"kill_pawld"})

    def test_an_hour_has_many_kills_freezes_and_partitions(self):
        counts = collections.Counter()
        for seed in range(60):
            counts.update(
                step.kind.split("_")[0]
                for step in schedule.steps(schedule.profile(seed, 60, "plain", "sqlite"))
            )
        self.assertGreater(counts["kill"], 5000)
        self.assertGreater(counts["freeze"], 500)
        self.assertGreater(counts["cut"], 500)

    def test_seeds_cover_every_disk_and_guard(self):
        worlds = [schedule.profile(seed, 10) for seed in range(100)]
        self.assertEqual({world.disk for world in worlds}, set(schedule.DISKS))
        self.assertEqual({world.guard for world in worlds}, set(schedule.GUARDS))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""The checker of the kill torture is itself checked: it must accept a sound record and catch each
planted lie."""

import unittest

from pawltest import record

SOUND = [
    ("ask", "r1", "a"),
    ("granted", "r1", "L1", 1),
    ("ask", "r2", "b"),
    ("granted", "r2", "L2", 2),
    ("give", "r2"),
    ("released", "r2", 1),
    ("ask", "r3", "b"),
    ("restart",),
    ("found", "a", 1),
    ("found", "b", None),
    ("ask", "r1", "a"),
    ("granted", "r1", "L1", 1),
    ("ask", "r3", "b"),
    ("granted", "r3", "L3", 4097),
    ("give", "r1"),
    ("restart",),
    ("found", "a", 1),
    ("found", "b", 4097),
    ("give", "r1"),
    ("released", "r1", 1),
]


class CheckerTest(unittest.TestCase):
    def faults(self, *events):
        return record.check(SOUND + list(events))

    def assertCaught(self, words, *events):
        faults = self.faults(*events)
        self.assertTrue(any(words in fault for fault in faults), faults)

    def test_a_sound_record_has_no_fault(self):
        self.assertEqual(record.check(SOUND), [])

    def test_a_lost_grant_is_caught(self):
        self.assertCaught("acknowledged grant lost", ("restart",), ("found", "b", None))

    def test_a_grant_that_changed_hands_is_caught(self):
        self.assertCaught("acknowledged grant lost", ("restart",), ("found", "b", 9000))

    def test_a_grant_lost_to_its_own_retry_is_caught(self):
        self.assertCaught("answered -LOST", ("restart",), ("ask", "r3", "b"), ("lost", "r3"))

    def test_a_grant_lost_before_its_first_release_is_caught(self):
        self.assertCaught("first release answered 0", ("give", "r3"), ("released", "r3", 0))

    def test_a_duplicated_token_is_caught(self):
        self.assertCaught("issued twice", ("ask", "r4", "c"), ("granted", "r4", "L4", 4097))

    def test_a_token_that_went_back_is_caught(self):
        self.assertCaught("token went back", ("ask", "r4", "c"), ("granted", "r4", "L4", 3))

    def test_a_lower_token_for_a_request_that_was_asked_earlier_is_no_fault(self):
        self.assertEqual(
            self.faults(
                ("ask", "r4", "c"),
                ("ask", "r5", "d"),
                ("granted", "r5", "L5", 5000),
                ("granted", "r4", "L4", 4999),
            ),
            [],
        )

    def test_a_second_grant_for_one_request_is_caught(self):
        self.assertCaught("on its retry", ("ask", "r3", "b"), ("granted", "r3", "L9", 5000))

    def test_a_second_holder_is_caught(self):
        self.assertCaught("while 4097 was held", ("ask", "r4", "b"), ("granted", "r4", "L4", 5000))

    def test_a_release_that_came_undone_is_caught(self):
        self.assertCaught("released stays released", ("restart",), ("found", "a", 1))

    def test_holder_without_a_request_is_caught(self):
        self.assertCaught("without a request for it", ("restart",), ("found", "z", 9999))

    def test_an_unacknowledged_grant_may_be_there_or_not(self):
        self.assertEqual(self.faults(("ask", "r4", "c"), ("restart",), ("found", "c", None)), [])
        self.assertEqual(
            self.faults(
                ("ask", "r4", "c"),
                ("restart",),
                ("found", "c", 5000),
                ("ask", "r4", "c"),
                ("granted", "r4", "L4", 5000),
            ),
            [],
        )

    def test_an_unacknowledged_grant_that_is_there_must_stay(self):
        self.assertCaught(
            "after another restart",
            ("ask", "r4", "c"),
            ("restart",),
            ("found", "c", 5000),
            ("restart",),
            ("found", "c", None),
        )
        self.assertCaught(
            "unacknowledged grant, then granted",
            ("ask", "r4", "c"),
            ("restart",),
            ("found", "c", 5000),
            ("ask", "r4", "c"),
            ("granted", "r4", "L4", 5001),
        )

    def test_an_unacknowledged_release_may_have_happened_or_not(self):
        self.assertEqual(
            self.faults(
                ("give", "r3"),
                ("restart",),
                ("found", "b", None),
                ("give", "r3"),
                ("released", "r3", 0),
            ),
            [],
        )
        self.assertEqual(
            self.faults(
                ("give", "r3"),
                ("restart",),
                ("found", "b", 4097),
                ("give", "r3"),
                ("released", "r3", 1),
            ),
            [],
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""What the tests that run the conformance kit against a database have in common."""

MOVES = ("move-into-newer", "move-out-of-newer", "moved")
# Cases that need something which not every resource has.
SITUATIONS = (
    *MOVES,
    "equal-keys",
    "another-key",
    "became-a-part",
    "advance-unreached",
    "rehearsed",
    "prepared-write",
    "prepared-outlives",
)


def assert_lacks(test, report, lacks):
    """Exactly these of SITUATIONS do not apply; and the guard says why, of every case."""
    skipped = {
        each["case"]: each["why"] for each in report["cases"] if each["end"] == "not applicable"
    }
    test.assertEqual({}, {case: why for case, why in skipped.items() if "(" not in why})
    test.assertEqual(set(lacks), set(skipped) & set(SITUATIONS))

"""Figures for people."""


def percentile(values, percent):
    """Of at least one value."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def percentiles(seconds):
    """"12 times, p50 1.2 s, p99 2.0 s, at most 2.5 s"."""
    if not seconds:
        return "never"
    return (
        f"{len(seconds)} times, p50 {percentile(seconds, 50):.2f} s, "
        f"p99 {percentile(seconds, 99):.2f} s, at most {max(seconds):.2f} s"
    )

# SPDX-License-Identifier: BSD-3-Clause
"""Limits of waits inside of tests, counted as on an idle machine, as patience.h does it for C."""
import os
import time

MOST = 10  # times the limit, whatever else runs

# Seconds after which a process ends that tests/support/bounded could not end.
LIMIT = float(os.environ.get("P3_LIMIT", 3000))
# The factor by which the build is slower than others.
SCALE = float(os.environ.get("P3_SCALE", 1))


def share_of_cpu():
    """Return the part of a CPU that a thread has while others run, 1 at most."""
    with open("/proc/loadavg", encoding="ascii") as f:
        minute, _, _, threads, _ = f.read().split()
    running = int(threads.split("/")[0]) - 1  # this process runs, too
    return min(1.0, len(os.sched_getaffinity(0)) / max(1, running, int(float(minute))))


class Patience:
    """The limit of one wait."""

    def __init__(self, seconds):
        self.left = seconds * SCALE
        self.last = time.monotonic()

    def is_over(self):
        """Count the time since the last call; return true if the limit is over."""
        now = time.monotonic()
        self.left -= (now - self.last) * max(share_of_cpu(), 1 / MOST)
        self.last = now
        return self.left <= 0

# SPDX-License-Identifier: BSD-3-Clause
"""Limits of waits inside of tests; cmake/limits.cmake sets both."""
import os
import time

# Seconds until a process ends that hangs.
LIMIT = float(os.environ.get("P3_LIMIT", 600))
# Seconds until a wait fails.
WAIT = float(os.environ.get("P3_WAIT", 120))


class Patience:
    """The limit of one wait."""

    def __init__(self):
        self.end = time.monotonic() + WAIT

    def is_over(self):
        return time.monotonic() >= self.end

# SPDX-License-Identifier: BSD-3-Clause
"""What drivers in Python share: failures, commands with a limit, and waits for a state"""
import subprocess
import sys
import time

from patience import LIMIT, Patience

failures = []


def fail(what):
    failures.append(what)
    print('FAILED:', what)


def perform(*command, **how):
    """Run a command, without input unless the caller has one; return it with its texts."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT,
                          **{'stdin': subprocess.DEVNULL, **how})


def until(what, truth):
    """Ask until the answer is true, or for the limit; return the last answer."""
    patience = Patience()
    while True:
        answer = truth()
        if answer:
            return answer
        if patience.is_over():
            fail(what)
            return answer
        time.sleep(0.1)


def finish():
    sys.exit(1 if failures else 0)

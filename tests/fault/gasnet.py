#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A node of a GASNet job dies at each point that the job reaches.

gasnet.py PROGRAM [ARGUMENT...] [--nodes N] [--every K] [--only PART] [--seed S]

The program is a job of random active messages, puts and gets.  At each point a node, and
the time when it strikes, are drawn at random.  The job must end by itself,
with a message and a status other than 0, and leave no process and no name in /dev/shm.
PTL3_FAULT=count tells the points that the job reaches.
"""
import argparse
import collections
import os
import random
import re
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from patience import LIMIT, Patience  # noqa: E402

MARK = "GN_FAULT_WALK"


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    return parser.parse_args()


def start(o, fault):
    env = dict(os.environ, PTL3_FAULT=fault, **{MARK: str(os.getpid())})
    yod = [os.environ["P3_YOD"], "-sz", str(o.nodes), o.program] + o.arguments
    return subprocess.Popen(yod, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, errors="replace")


def reached(o):
    """Return how often the job reaches each point, at most, in one process."""
    counts = collections.Counter()
    out, err = start(o, "count").communicate(timeout=LIMIT)
    for name, n in re.findall(r"\b([a-z0-9_]+\.[a-z0-9_]+)\s+(\d+)", out + err):
        if not name.startswith("yod."):
            counts[name] = max(counts[name], int(n))
    return {name: n for name, n in counts.items() if n}


class Watcher(threading.Thread):
    """Reads a job's messages, and notes when the point strikes."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.lines, self.struck = stream, [], False
        self.start()

    def run(self):
        for line in self.stream:
            if "fault: " in line and not self.struck:
                self.struck = True
            self.lines.append(line)


def marked():
    """Return the processes of this walk's jobs that are there."""
    mark, found = f"{MARK}={os.getpid()}".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def names():
    return {n for n in os.listdir("/dev/shm") if n.startswith(("ptl3", "p3", "gasnet"))}


def until(condition):
    patience = Patience()
    while not condition() and not patience.is_over():
        time.sleep(0.01)
    return condition()


def wait(job, watcher):
    """Return what is wrong with the end of the job, or None."""
    whole, after = time.monotonic() + LIMIT, None
    while job.poll() is None:
        if watcher.struck and not after:
            after = Patience()
        if after and after.is_over():
            return "does not end after the death"
        if time.monotonic() > whole:
            return "does not end"
        time.sleep(0.005)
    return None


def play(o, fault, before):
    """Return whether the point struck, and what is wrong."""
    job = start(o, fault)
    watcher = Watcher(job.stderr)
    drain = threading.Thread(target=job.stdout.read, daemon=True)
    drain.start()
    wrong = wait(job, watcher)
    job.kill()
    job.wait()
    watcher.join(5)
    if not watcher.struck:
        return False, wrong or (job.returncode and f"status {job.returncode}")
    messages = [line for line in watcher.lines if "fault: " not in line]
    if not wrong and job.returncode == 0:
        wrong = "status 0 after a death"
    if not wrong and not messages:
        wrong = "no message"
    if not wrong and not until(lambda: not marked()):
        wrong = f"processes are left: {marked()}"
    if not wrong and not until(lambda: not names() - before):
        wrong = f"names are left: {names() - before}"
    return True, wrong


def main():
    o = options()
    if "lane." not in subprocess.run([o.program], env=dict(os.environ, PTL3_FAULT="list"),
                                     capture_output=True, text=True).stdout:
        print("skipped: a build without points (P3_FAULTS)")
        return 77
    random.seed(o.seed)
    points = reached(o)
    every = o.every * (4 if os.environ.get("FAULT_QUICK") else 1)
    chosen = sorted(name for name in points if o.only in name)[random.randrange(every)::every]
    deaths = failures = 0
    for name in chosen:
        nth, rank = random.randint(1, max(1, points[name] // 2)), random.randrange(o.nodes)
        fault = f"{name}:{nth}:kill@{rank}"
        struck, wrong = play(o, fault, names())
        deaths += struck
        if wrong:
            print(f"PTL3_FAULT={fault}: {wrong}")
            failures += 1
    print(f"# tried: {deaths} deaths at {len(chosen)} of {len(points)} points, seed {o.seed}")
    if chosen and deaths < len(chosen) // 2:
        print("most points were not reached")
        failures += 1
    return 1 if failures else 0


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A server and a client of CCI, one of which dies or stops at each point named cci.*

cci.py FAULT_CCI [--action kill|stop] [--every K] [--only PART]

Each point strikes in the server and in the client. The other process must come to its
end by itself; after a stop both must.
"""
import argparse
import os
import signal
import subprocess
import sys
import time

# Points that these two processes do not reach, with the reason.
NEVER = {}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--action", default="kill", choices=["kill", "stop"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    return parser.parse_args()


def points_of(program):
    env = dict(os.environ, PTL3_FAULT="list")
    out = subprocess.run([program, "server"], env=env, capture_output=True, text=True)
    return sorted({line for line in out.stdout.split() if line.startswith("cci.")})


def start(program, arguments, fault):
    env = dict(os.environ)
    if fault:
        env["PTL3_FAULT"] = fault
    return subprocess.Popen([program] + arguments, env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def state_of(process):
    try:
        with open(f"/proc/{process.pid}/stat") as f:
            return f.read().rsplit(") ", 1)[1][0]
    except OSError:
        return "X"


def let_go_on(process):
    """Wait for the end of a process, and continue it when it has stopped."""
    stopped = False
    while process.poll() is None:
        if state_of(process) == "T":
            stopped = True
            time.sleep(0.3)  # pause: the other one is to notice
            process.send_signal(signal.SIGCONT)
        time.sleep(0.01)
    return stopped


class Run:
    def __init__(self, program, point, action, victim):
        self.program, self.victim = program, victim
        self.fault = f"{point}:1:{action}"
        self.what = f"PTL3_FAULT={self.fault} in the {victim}"

    def fault_of(self, role):
        return self.fault if role == self.victim else None

    def play(self):
        """Return whether the point struck; raise if a process does not end well."""
        server = start(self.program, ["server"], self.fault_of("server"))
        uri = server.stdout.readline().strip()
        ends = {"server": server}
        if uri:
            ends["client"] = start(self.program, ["client", uri], self.fault_of("client"))
        stopped = self.victim in ends and self.fault.endswith("stop") and \
            let_go_on(ends[self.victim])
        errors = {role: p.communicate()[1] for role, p in ends.items()}
        struck = stopped or "fault: " in errors.get(self.victim, "")
        for role, process in ends.items():
            dies = struck and role == self.victim and self.fault.endswith("kill")
            want = -signal.SIGKILL if dies else 0
            if process.returncode != want:
                raise RuntimeError(f"{self.what}: the {role} ended with "
                                   f"{process.returncode}: {errors[role].strip()}")
        return struck


def main():
    o = options()
    points = points_of(o.program)
    if not points:
        print("skipped: a build without points (P3_FAULTS)")
        return 77
    strikes = failures = 0
    for point in [p for p in points[::o.every] if o.only in p]:
        struck = 0
        for victim in ("server", "client"):
            try:
                struck += Run(o.program, point, o.action, victim).play()
            except RuntimeError as e:
                print(e)
                failures += 1
        strikes += struck
        if not struck and point not in NEVER and o.action == "kill":
            print(f"{point} is not reached")
            failures += 1
    print(f"# tried: {strikes} deaths or stops at {len(points)} points of CCI")
    return 1 if failures else 0


sys.exit(main())

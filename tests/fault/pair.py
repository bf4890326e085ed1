#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A server and a client, one of which dies or stops at each point of an interface

pair.py PROGRAM INTERFACE [--action kill|stop] [--every K] [--only PART]

PROGRAM is fault_cci or fault_ofi; the points of an INTERFACE, cci or ofi, are named cci.*
or ofi.*.

Each point strikes in the server and in the client. The other process must come to its
end by itself; after a stop both must.
"""
import argparse
import os
import signal
import subprocess
import sys
import threading
import time

# Points that a run reaches by chance only, with the reason.
NEVER = {"cci.withdrawn": "a peer must read a WRITE at the moment of its deregistration",
         "ofi.asked": "a peer must be silent for a second"}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("interface")
    parser.add_argument("--action", default="kill", choices=["kill", "stop"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    return parser.parse_args()


def points_of(program, interface):
    env = dict(os.environ, PTL3_FAULT="list")
    out = subprocess.run([program, "server"], env=env, capture_output=True, text=True)
    return sorted({line for line in out.stdout.split() if line.startswith(interface + ".")})


def start(program, arguments, fault):
    env = dict(os.environ)
    if fault:
        env["PTL3_FAULT"] = fault
    return subprocess.Popen([program] + arguments, env=env, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def state_of(process):
    try:
        with open(f"/proc/{process.pid}/stat") as f:
            return f.read().rsplit(") ", 1)[1][0]
    except OSError:
        return "X"


class Waker(threading.Thread):
    """Continues a process, from its start to its end, each time that it has stopped."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.stops = process, 0
        self.start()

    def run(self):
        while state_of(self.process) not in "XZ":
            if state_of(self.process) == "T":
                self.stops += 1
                time.sleep(0.3)  # pause: the other process is to notice
                self.process.send_signal(signal.SIGCONT)
            time.sleep(0.01)


class Run:
    def __init__(self, program, point, action, victim):
        self.program, self.victim, self.action = program, victim, action
        self.fault = f"{point}:1:{action}"
        self.what = f"PTL3_FAULT={self.fault} in the {victim}"
        self.waker = None

    def begin(self, role, arguments):
        strikes = role == self.victim
        process = start(self.program, [role] + arguments, self.fault if strikes else None)
        if strikes and self.action == "stop":
            self.waker = Waker(process)
        return process

    def play(self):
        """Return whether the point struck; raise if a process does not end well."""
        server = self.begin("server", [])
        uri = server.stdout.readline().strip()
        ends = {"server": server}
        if uri:
            ends["client"] = self.begin("client", [uri])
            ends["client"].wait()
        errors = {role: p.communicate()[1] for role, p in reversed(ends.items())}
        struck = (self.waker and self.waker.stops > 0) or \
            "fault: " in errors.get(self.victim, "")
        for role, process in ends.items():
            dies = struck and role == self.victim and self.action == "kill"
            want = -signal.SIGKILL if dies else 0
            if process.returncode != want:
                raise RuntimeError(f"{self.what}: the {role} ended with "
                                   f"{process.returncode}: {errors[role].strip()}")
        return struck


def main():
    o = options()
    points = points_of(o.program, o.interface)
    if not points:
        print("skipped: a build without points (P3_FAULTS)")
        return 77
    strikes = failures = 0
    for point in [p for p in points[::o.every] if o.only in p]:
        struck = 0
        for victim in ("server", "client"):
            try:
                struck += bool(Run(o.program, point, o.action, victim).play())
            except RuntimeError as e:
                print(e)
                failures += 1
        strikes += struck
        if not struck and point not in NEVER and o.action == "kill":
            print(f"{point} is not reached")
            failures += 1
    print(f"# tried: {strikes} deaths or stops at {len(points)} points of {o.interface}")
    return 1 if failures else 0


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A remote shell that looks at the frames between yod and its agent.

usage: frames.py local.sh host line

FRAMES_TRACED  file for the bytes of traces that were sent, and of those that were under
               way at most
FRAMES_ENDS    file for the frames of the agent about ends of ranks, in their order
FRAMES_SAY     number of lines that the agent says behind its first frame; when yod has
               taken them, FRAMES_SAID is made
"""

import os
import re
import struct
import subprocess
import sys
import threading

HEADER = struct.Struct("<IIIiQQ")  # struct p3_frame
source = os.path.join(os.path.dirname(__file__), "../../launcher/frames.h")
with open(source, encoding="utf-8") as f:
    text = f.read()
names = re.findall(r"\bP3_FRAME_(\w+)(?: = 1)?,(?=\s)", text[: text.index("P3_FRAME_OPS")])
OP = {name: number for number, name in enumerate(names, 1)}
TRACE_STREAM = 2

lock = threading.Lock()
sent = granted = most = 0
ends = []


def read_all(fd, n):
    parts = []
    while n:
        part = os.read(fd, n)
        if not part:
            sys.exit()
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data) :]


def frames(fd):
    while True:
        head = read_all(fd, HEADER.size)
        fields = HEADER.unpack(head)
        yield fields, head + read_all(fd, fields[5])


def say(magic, n):
    for i in range(n):
        line = b"yod: a: line %d %s\n" % (i, b"x" * 80)
        write_all(1, HEADER.pack(magic, OP["SAY"], 0, 0, 0, len(line)) + line)
    with open(os.environ["FRAMES_SAID"], "w", encoding="utf-8"):
        pass


def to_agent(fd):
    global granted
    try:
        for (_, op, _, value, number, _), data in frames(0):
            with lock:
                granted += number if op == OP["ROOM"] and value == TRACE_STREAM else 0
            write_all(fd, data)
    except BrokenPipeError:
        pass  # the agent has ended
    finally:
        os.close(fd)


def to_yod(fd):
    global sent, most
    first = True
    for (magic, op, node, _, _, length), data in frames(fd):
        ends.extend(f"{name} {node}" for name in ("ENDED", "GONE") if op == OP[name])
        with lock:
            sent += length if op == OP["TRACE"] else 0
            most = max(most, sent - granted)
        write_all(1, data)
        if first and "FRAMES_SAY" in os.environ:
            say(magic, int(os.environ["FRAMES_SAY"]))
        first = False


with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
    threading.Thread(target=to_agent, args=(os.dup(agent.stdin.fileno()),), daemon=True).start()
    agent.stdin.close()
    try:
        to_yod(agent.stdout.fileno())
    except (SystemExit, BrokenPipeError):
        pass
if "FRAMES_TRACED" in os.environ:
    with open(os.environ["FRAMES_TRACED"], "w", encoding="utf-8") as f:
        print(sent, most, file=f)
if "FRAMES_ENDS" in os.environ:
    with open(os.environ["FRAMES_ENDS"], "w", encoding="utf-8") as f:
        print(*ends, sep="\n", file=f)
os._exit(0)

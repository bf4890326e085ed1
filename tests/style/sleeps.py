#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Find sleeps in tests that wait for a state by waiting for a time.

usage: sleeps.py ROOT

A sleep in a C test is the pause of a loop that looks at the state (while, do, or a for whose
condition calls a function or has two parts), or it has a comment with "pause:", beside it or
above, that says why the time itself matters: a stagger between processes, a load that comes
and goes, or time for a wrong effect to show.
"""

import pathlib
import re
import sys

CALL = re.compile(r"\b(?:u?sleep|nanosleep|clock_nanosleep|sleep_[mu]s)\s*\(")
DEFINED = re.compile(r"^(?:static |void |int )")


def indent(line):
    return len(line) - len(line.lstrip("\t "))


def header_of(lines, at):
    """Return the line that begins the statement or block around lines[at]."""
    for k in range(at - 1, max(-1, at - 40), -1):
        line = lines[k]
        if line.strip() and indent(line) < indent(lines[at]) and not line.strip().startswith(("/*", "*")):
            return line.strip(), k
    return "", 0


def is_poll(lines, at):
    here = lines[at].strip()
    if re.match(r"(for|while) \(", here):
        return is_condition(here)
    head, k = header_of(lines, at)
    if head.startswith("do {") or head == "do":
        return True
    while k and head and not re.match(r"(\} )?(for|while|do|if|else|case|switch)\b", head) and \
            indent(lines[k]) and not head.endswith(";"):
        k -= 1  # a header of several lines
        head = lines[k].strip() + " " + head
    return bool(re.match(r"(for|while) \(", head)) and is_condition(head)


def is_condition(head):
    if head.startswith("while"):
        return head != "while (1)"
    parts = head.split(";")
    return len(parts) > 1 and bool(parts[1].strip()) and ("(" in parts[1] or "&&" in parts[1] or "!" in parts[1])


def has_reason(lines, at):
    """Return true if a comment beside the line, or right above it, says "pause:"."""
    if "pause:" in lines[at]:
        return True
    k = at
    if k + 1 < len(lines) and lines[k + 1].strip().startswith("/* pause:"):
        return True
    k -= 1
    if k < 0 or not lines[k].rstrip().endswith("*/"):
        return False
    while k >= 0:
        if "pause:" in lines[k]:
            return True
        if "/*" in lines[k]:
            return False
        k -= 1
    return False


def sleeps_of(path):
    lines = path.read_text(errors="replace").splitlines()
    for at, line in enumerate(lines):
        code = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|//.*", "", line)
        if code.lstrip().startswith(("*", "/*")) or DEFINED.match(line) or not CALL.search(code):
            continue
        if not is_poll(lines, at) and not has_reason(lines, at):
            yield at + 1, line.strip()


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    files = sorted(p for s in ("*.c", "*.cc", "*.h") for p in (root / "tests").rglob(s))
    bad = False
    for path in files:
        for number, text in sleeps_of(path):
            bad = True
            print(f"{path.relative_to(root)}:{number}: waits for a time: {text}; wait for the state, or"
                  ' give the reason in a comment with "pause:"')
    if len(files) < 50:
        bad = True
        print(root, "has only", len(files), "test sources")
    sys.exit(bad)


if __name__ == "__main__":
    main()

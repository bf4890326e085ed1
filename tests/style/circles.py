#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check that the calls between the files of a folder form no circle.

usage: circles.py build-dir folder...   (folders of the source tree: nic lib lib/gasnet ...)

A file calls another if its object code has a call or a jump into a function that the
other defines.  Calls through pointers do not count: a table of functions is how a lower
file calls an upper one that it does not know.  Print the floors of each folder on
success, and each offending call otherwise.  A source that is compiled several times, with
other definitions, has the calls of all its object files.  The object files must hold
machine code (any build but one with link-time optimization only).
"""
import argparse
import bisect
import collections
import pathlib
import re
import subprocess
import sys

# Relocations of calls and jumps: x86-64, and 64-bit Arm.
CALL = re.compile(
    r"(?P<at>[0-9a-f]+) R_(?:X86_64_PLT32|AARCH64_CALL26|AARCH64_JUMP26)\s+(?P<name>[\w.]+)")
SYMBOL = re.compile(r"(?P<at>[0-9a-f]+) (?P<binding>..)....F (?P<section>\S+)\t[0-9a-f]+ +"
                    r"(?:\.hidden )?(?P<name>[\w.]+)$")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def objects(build, folder):
    """Return the lists of object files of a folder's sources, by the source's path."""
    found = collections.defaultdict(list)
    for path in sorted(pathlib.Path(build).rglob("*.o")):
        match = re.search(rf"\.dir/(?:.*/)?({folder}/[\w/]+\.c)\.o$", str(path))
        if match is None:  # a folder with targets of its own
            match = re.search(rf"/({folder})/CMakeFiles/[\w-]+\.dir/([\w/]+\.c)\.o$", str(path))
        source = "/".join(match.groups()) if match else ""
        if source and (ROOT / source).exists():  # else a leftover of an older tree
            found[source].append(path)
    return found


def calls(paths):
    """Return the functions that object files of one source define for others, and pairs of
    the calling and the called function."""
    exported, found = set(), set()
    for path in paths:
        more = calls_of_object(path)
        exported |= more[0]
        found |= more[1]
    return exported, found


def calls_of_object(path):
    """Return the same of one object file."""
    out = subprocess.run(["objdump", "-tr", path], check=True, capture_output=True, text=True).stdout
    exported, starts, found = set(), collections.defaultdict(list), set()
    section = None  # whose relocations follow
    for line in out.splitlines():
        symbol = SYMBOL.match(line)
        call = CALL.match(line)
        if symbol:
            starts[symbol["section"]].append((int(symbol["at"], 16), symbol["name"]))
            if symbol["binding"] != "l ":
                exported.add(symbol["name"])
        elif line.startswith("RELOCATION RECORDS FOR ["):
            section = sorted(starts.get(line[line.index("[") + 1:line.index("]")], []))
        elif call and section:
            at = bisect.bisect(section, (int(call["at"], 16), "~")) - 1
            found.add((section[at][1] if at >= 0 else "?", call["name"]))
    return exported, found


def arrows(files):
    """Return {caller's file: {called file: [(function, function)]}}."""
    read = {source: calls(paths) for source, paths in files.items()}
    home = {name: source for source, (exported, _) in read.items() for name in exported}
    result = {source: collections.defaultdict(list) for source in files}
    for source, (_, found) in read.items():
        for caller, called in sorted(found):
            if home.get(called, source) != source:
                result[source][home[called]].append((caller, called))
    return result


def circles(graph):
    """Return the sets of files that reach each other, by Tarjan's algorithm."""
    number, low, stack, result = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for below in graph[node]:
            if below not in number:
                visit(below)
                low[node] = min(low[node], low[below])
            elif below in stack:
                low[node] = min(low[node], number[below])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                result.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in number:
            visit(node)
    return result


def floors(graph):
    """Return the files of a graph without circles, the lowest floor first."""
    level = {}

    def of(node):
        if node not in level:
            level[node] = 1 + max((of(below) for below in graph[node]), default=-1)
        return level[node]

    for node in graph:
        of(node)
    rows = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for node, at in sorted(level.items()):
        rows[at].append(node)
    return rows


def complain(graph, circle):
    """Print each call between two files of a circle."""
    print(f"these {len(circle)} files call each other in a circle; expected none: move a function to the "
          "file below, or pass it as a pointer:")
    for source in circle:
        for below in sorted(set(graph[source]) & set(circle)):
            pairs = graph[source][below]
            print(f"  {source} -> {below}: " + ", ".join(f"{a} calls {b}" for a, b in pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="build directory")
    parser.add_argument("folder", nargs="+", help="folder of the source tree")
    parser.add_argument("--floors", action="store_true", help="print the files by floor")
    args = parser.parse_args()
    bad = False
    for folder in args.folder:
        files = objects(args.build, folder)
        if not files:
            sys.exit(f"circles.py: no object file of {folder}/ in {args.build}; expected a build of it")
        graph = arrows(files)
        if not any(graph.values()):
            sys.exit(f"circles.py: no call found in {folder}/; expected machine code in its object files")
        found = circles(graph)
        for circle in found:
            complain(graph, circle)
        bad = bad or bool(found)
        if args.floors and not found:
            for at, row in enumerate(floors(graph)):
                print(f"{folder} {at}: " + " ".join(row))
    return bad


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare the tests of a build folder with docs/testing.md.

usage: tests.py ROOT BUILD

Each test has one label of the first table, and other labels from the second one only; each
area has a test in the quick run; no quick test is a variant.  Each test runs below
tests/support/bounded.c.  The table of files names each source file once or in a pattern, and tests that
exist.  A name anywhere in a document that begins like those of tests is that of a test, of a
program, or of a thing in tests/spec or the public headers.
"""

import fnmatch
import pathlib
import re
import sys

TEXT = "docs/testing.md"
CODE = ("shm", "nic", "lib", "launcher")
NOT_QUICK = {"fault", "bench", "nightly"}  # a build of its own; programs that measure; what takes long
STARTS = ("test", "mp", "stress", "spec", "domain", "compat", "trace", "style", "headers",
          "example", "package", "promela", "wire", "model", "hosts")
NO_LIMIT = {"example_fileserver_anew", "nightly_*"}  # removes a folder; run other tests

bad = []


def complain(*words):
    bad.append(" ".join(map(str, words)))


def tests_of(build):
    """Return the command line and the labels of each test."""
    commands, labels = {}, {}
    for path in build.rglob("CTestTestfile.cmake"):
        text = path.read_text()
        for name, rest in re.findall(r"^add_test\((?:\[=*\[)?([^\s\]]+)(?:\]=*\])? (.*)\)$", text, re.M):
            commands[name] = rest
        for name, rest in re.findall(
                r"^set_tests_properties\((?:\[=*\[)?([^\s\]]+)(?:\]=*\])? PROPERTIES (.*)\)$", text, re.M):
            found = re.search(r'\bLABELS "([^"]*)"', rest)
            labels[name] = found[1].split(";") if found else []
    return commands, labels


def rows_below(text, head):
    """Return the cells of the table with this head."""
    lines = text.splitlines()
    if head not in lines:
        complain(TEXT, "has no table with the head:", head)
        return []
    rows = []
    for line in lines[lines.index(head) + 2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def check_labels(text, commands, labels):
    tables = text.split("Further labels", 1)
    head = "| label | its tests |"
    areas = {n for row in rows_below(tables[0], head) for n in re.findall(r"`([^`]+)`", row[0])}
    others = {n for row in rows_below(tables[-1], head) for n in re.findall(r"`([^`]+)`", row[0])}
    quick = set()
    for name, command in commands.items():
        mine = labels.get(name, [])
        kinds = [l for l in mine if l in areas]
        if not kinds:
            complain(name, "has no label of an area:", mine)
        for label in mine:
            if label not in areas | others:
                complain(name, "has a label that", TEXT, "does not explain:", label)
        if "quick" in mine:
            quick |= set(kinds)
            if {"matrix", "matrix-sanitized"} & set(mine):
                complain(name, "is in the quick run, and a variant:", mine)
        if "/tests/support/bounded" not in command and not any(fnmatch.fnmatchcase(name, n) for n in NO_LIMIT):
            complain(name, "does not run below tests/support/bounded")
    used = {l for mine in labels.values() for l in mine}
    for area in sorted((areas & used) - quick - NOT_QUICK):
        complain("no test of the label", area, "is in the quick run (p3_quick)")


def check_files(root, text, commands):
    files = [str(p.relative_to(root)) for f in CODE for p in sorted((root / f).rglob("*.[ch]"))]
    if not files:
        complain("no sources in", root)
    named = {}
    for cells in rows_below(text, "| files | tests |"):
        for pattern in re.findall(r"`([^`]+)`", cells[0]):
            hit = [f for f in files if fnmatch.fnmatchcase(f, pattern)]
            if not hit:
                complain(TEXT, "names files that are not there:", pattern)
            for f in hit:
                named.setdefault(f, []).append(pattern)
        tests = re.findall(r"`([^`]+)`", cells[1])
        if not tests:
            complain(TEXT, "names no test for", cells[0])
        for test in tests:
            if not fnmatch.filter(commands, test):
                complain(TEXT, "names a test that is not there:", test)
    for f in files:
        if f not in named:
            complain(f, "is not in the table of files and tests in", TEXT)
        elif len([p for p in named[f] if "*" not in p]) > 1:
            complain(f, "is named twice in", TEXT)


def spellings(name):
    """Return the names that a name with {a,b} in it stands for."""
    choice = re.search(r"\{([^{}]*)\}", name)
    if not choice:
        return [name]
    return [n for word in choice[1].split(",")
            for n in spellings(name[:choice.start()] + word + name[choice.end():])]


def check_names(root, build, commands):
    """Compare the names of tests in all documents with the tests and programs of the build."""
    known = set(commands) | set(re.findall(r"^build ([\w.+-]+): phony", (build / "build.ninja").read_text(), re.M))
    for path in [*(root / "include").glob("*.h"), *(root / "tests/spec").glob("*.c")]:
        known |= set(re.findall(r"\w+", path.read_text()))
    name = re.compile(rf"(?<![\w/.-])(?:{'|'.join(STARTS)})_[\w*{{}},.]*[\w*}}]")
    found = 0
    for doc in [root / "README.md", root / "CONTRIBUTING.md", root / "NEWS.md", *sorted(root.glob("docs/**/*.md"))]:
        for written in sorted(set(name.findall(doc.read_text()))) if "history" not in doc.parts else ():
            for one in spellings(written):
                found += 1
                pattern = one.replace("MODE", "*").removesuffix("_full")  # those are in long runs only
                if not fnmatch.filter(known, pattern) and not fnmatch.filter(commands, pattern + ".*"):
                    complain(doc.relative_to(root), "names a test that is not there:", one)
    if found < 100:
        complain("the documents name only", found, "tests")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, build = map(pathlib.Path, sys.argv[1:])
    commands, labels = tests_of(build)
    if len(commands) < 100:
        complain(build, "has only", len(commands), "tests")
    text = (root / TEXT).read_text()
    check_labels(text, commands, labels)
    check_files(root, text, commands)
    check_names(root, build, commands)
    if bad:
        print("\n".join(bad))
        sys.exit(1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare the fields of nic/proto/format.h with the table in docs/design/messages.md.

usage: message_words.py ROOT

Each enum p3_LAYOUT_fields of the header is a layout, and each of its P3_FIELD(word,
shift, bits) a field.  The table has a row for each field: layout, word, bits, name.  The
fields of one message must not overlap, unless the table says "or" before the name.  No
other file of nic/ reads or writes a word of a cell by its number, except word 0.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
HEADER = "nic/proto/format.h"
DOCUMENT = "docs/design/messages.md"
LAYOUT = re.compile(r"enum p3_(\w+)_fields \{(.*?)\}", re.S)
FIELD = re.compile(r"(P3_\w+) = P3_FIELD\((\d+), (\d+), (\d+)\)")
ROW = re.compile(r"^\| (\w+) \| (\d)(?:\.\.\d)? \| (\d+)(?:\.\.(\d+))? \| (or )?`(P3_\w+)` \|", re.M)
BY_NUMBER = re.compile(r"(?:\bc|\bcell|\bcells\[[^]]*\]|\))->w\[[1-9]\]|char \*\)[\w>-]*c(?:ell)? \+ \d")
# The layouts that one message has at the same time.
MESSAGES = (
    ("header", "request", "eager"),
    ("header", "request", "atomic"),
    ("header", "request", "long"),
    ("header", "request", "get"),
    ("header", "response", "reply"),
    ("header", "response", "long_reply"),
)
bad = []


def of_header():
    """Return {name: (layout, word, shift, bits)} of the header."""
    text = (ROOT / HEADER).read_text()
    return {
        name: (layout, int(word), int(shift), int(bits))
        for layout, body in LAYOUT.findall(text)
        for name, word, shift, bits in FIELD.findall(body)
    }


def of_document():
    """Return the same of the document's table, and the names behind an "or"."""
    found, others = {}, set()
    for layout, word, low, high, other, name in ROW.findall((ROOT / DOCUMENT).read_text()):
        if name in found:
            bad.append(f"{DOCUMENT}: {name} has two rows")
        found[name] = (layout, int(word), int(low), int(high or low) - int(low) + 1)
        if other:
            others.add(name)
    return found, others


def compare(header, document):
    for name in sorted(header.keys() | document.keys()):
        here, there = header.get(name), document.get(name)
        if here != there:
            bad.append(
                f"{name}: {HEADER} has {here}, {DOCUMENT} has {there}"
                " (layout, word, first bit, bits); make them alike"
            )


def overlaps(header, others):
    for layouts in MESSAGES:
        used = {}
        for name, (layout, word, shift, bits) in header.items():
            if layout not in layouts or name in others:
                continue
            for bit in range(64 * word + shift, 64 * word + shift + bits):
                if bit >= 512 or bit in used:
                    bad.append(f"{name} of {'+'.join(layouts)}: {used.get(bit, 'no cell')} has bit {bit}")
                    break
                used[bit] = name


def counted():
    for path in sorted((ROOT / "nic").rglob("*.[ch]")):
        if path == ROOT / HEADER or "wire" in path.parts or "report" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if BY_NUMBER.search(line):
                bad.append(f"{path.relative_to(ROOT)}:{number}: a word by its number; {HEADER} has names")


header = of_header()
document, others = of_document()
if len(header) < 20 or not {layout for m in MESSAGES for layout in m} == {f[0] for f in header.values()}:
    bad.append(f"{HEADER}: {len(header)} fields found; expected the layouts of this script")
compare(header, document)
overlaps(header, others)
counted()
print("\n".join(bad) or f"{len(header)} fields: {HEADER} and {DOCUMENT} agree")
sys.exit(bool(bad))

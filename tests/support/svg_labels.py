#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the labels of pictures: svg_labels.py FILE...  No two overlap, none leaves the
picture, and none has a number of more than four digits: an axis counts in K, M or G."""
import re
import sys
import xml.etree.ElementTree as xml

LETTER = 0.5   # mean width of a letter, in font sizes, of a sans-serif font
RISE, FALL = 0.75, 0.2  # of a line of text above and below its base line
SLACK = 1.0    # pixels that two boxes may share


def number(element, name, default):
    found = re.match(r"-?[\d.]+", element.get(name, ""))
    return float(found[0]) if found else default


def transformed(matrix, text):
    """The matrix (a, b, c, d, e, f) after the transformations of an attribute."""
    for kind, words in re.findall(r"(\w+)\(([^)]*)\)", text or ""):
        v = [float(w) for w in re.split(r"[ ,]+", words.strip())]
        if kind == "translate":
            matrix = times(matrix, (1, 0, 0, 1, v[0], v[1] if len(v) > 1 else 0))
        elif kind == "rotate":
            x, y = v[1:3] if len(v) > 2 else (0, 0)
            turn = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}[v[0] % 360]
            matrix = times(matrix, (1, 0, 0, 1, x, y))
            matrix = times(matrix, (turn[0], turn[1], -turn[1], turn[0], 0, 0))
            matrix = times(matrix, (1, 0, 0, 1, -x, -y))
    return matrix


def times(m, n):
    a, b, c, d, e, f = m
    return (a * n[0] + c * n[1], b * n[0] + d * n[1], a * n[2] + c * n[3],
            b * n[2] + d * n[3], a * n[4] + c * n[5] + e, b * n[4] + d * n[5] + f)


def at(m, x, y):
    return m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5]


class Label:
    def __init__(self, words, matrix, x, y, size, anchor):
        width = LETTER * size * len(words)
        left = x - {"middle": width / 2, "end": width}.get(anchor, 0)
        corners = [at(matrix, left, y - RISE * size), at(matrix, left + width, y + FALL * size)]
        self.words = words
        self.x = sorted(c[0] for c in corners)
        self.y = sorted(c[1] for c in corners)

    def overlaps(self, other):
        return all(min(a[1], b[1]) - max(a[0], b[0]) > SLACK
                   for a, b in ((self.x, other.x), (self.y, other.y)))


def labels(element, matrix=(1, 0, 0, 1, 0, 0), size=12.0, anchor="start"):
    """All texts below an element, with their boxes."""
    matrix = transformed(matrix, element.get("transform"))
    size = number(element, "font-size", size)
    anchor = element.get("text-anchor", anchor)
    kind = element.tag.rpartition("}")[2]
    if kind == "text":
        words = "".join(element.itertext()).strip()
        if words:
            yield Label(words, matrix, number(element, "x", 0), number(element, "y", 0), size,
                        anchor)
        return
    if kind in ("defs", "title", "desc"):
        return
    for child in element:
        yield from labels(child, matrix, size, anchor)


def complaints(path):
    root = xml.parse(path).getroot()
    width, height = number(root, "width", 0), number(root, "height", 0)
    found = list(labels(root))
    if not found:
        yield "no labels"
    for i, a in enumerate(found):
        if width and not (-SLACK <= a.x[0] and a.x[1] <= width + SLACK and
                          -SLACK <= a.y[0] and a.y[1] <= height + SLACK):
            yield "'%s' leaves the picture" % a.words
        if re.fullmatch(r"\d{5,}", a.words):
            yield "'%s' has more than four digits" % a.words
        for b in found[:i]:
            if a.overlaps(b):
                yield "'%s' overlaps '%s'" % (a.words, b.words)


def main():
    wrong = ["%s: %s" % (path, what) for path in sys.argv[1:] for what in complaints(path)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the labels of pictures: svg_labels.py [--drawn] [--colours COLOURS] FILE...

No two overlap, none leaves the picture, and none has a number of more than four digits: an axis
counts in K, M or G.  With --drawn, for pictures that were drawn by hand, none touches an arrow or
the edge of a box.  With --colours, for pictures of gnuplot, each curve and each bar that has the
name of a library in the file COLOURS has its color."""
import argparse
import re
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 0.5   # mean width of a letter, in font sizes, of a sans-serif font
RISE, FALL = 0.75, 0.2  # of a line of text above and below its base line
SLACK = 1.0    # pixels that two boxes may share
MARGIN = 3.0   # pixels between a label and a line, as letters of other fonts are wider


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


def lines(root):
    """The lines of a picture that is drawn of boxes and of paths with corners: pairs of points."""
    for element in root:
        kind = element.tag.rpartition("}")[2]
        corners = []
        if kind == "rect" and element.get("stroke"):
            x, y, w, h = (number(element, name, 0) for name in ("x", "y", "width", "height"))
            corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)]
        elif kind == "path":
            corners = [tuple(map(float, pair.split(",")))
                       for pair in re.findall(r"[ML](-?[\d.]+,-?[\d.]+)", element.get("d"))]
        yield from zip(corners, corners[1:])


def touches(label, line):
    """Whether a line passes a label at less than the margin: clip it at the label's box."""
    (x1, y1), (x2, y2) = line
    first, last = 0.0, 1.0
    for start, way, (low, high) in ((x1, x2 - x1, label.x), (y1, y2 - y1, label.y)):
        low, high = low - MARGIN, high + MARGIN
        if not way:
            if not low < start < high:
                return False
            continue
        ends = sorted(((low - start) / way, (high - start) / way))
        first, last = max(first, ends[0]), min(last, ends[1])
    return first < last


def painted(root):
    """The curves and bars of a picture of gnuplot: name, set of colors such as #d00000."""
    def colours(elements, attribute):
        return {"#%02x%02x%02x" % tuple(map(int, re.findall(r"\d+", each.get(attribute))))
                for each in elements}
    names = list(labels(root))
    for group in root.iter(SVG + "g"):
        title = group.find(SVG + "title")
        if title is None or not group.get("id", "").startswith("gnuplot_plot"):
            continue
        if not title.text.startswith("gnuplot_plot"):
            yield title.text, colours(group.iter(SVG + "use"), "color") # the marks
        for bar in group.iter(SVG + "polygon"):
            xs = [float(pair.split(",")[0]) for pair in bar.get("points").split()]
            for name in names:
                if min(xs) < sum(name.x) / 2 < max(xs):
                    yield name.words, colours([bar], "fill")


def miscoloured(root, libraries):
    names = list(painted(root))
    known = 0
    for name, colours in names:
        plain = name.lower().replace(" ", "")
        of = max((each for each in libraries if plain.startswith(each)), key=len, default=None)
        known += of is not None
        if of and colours != {libraries[of]}:
            yield "'%s' is %s, not %s" % (name, " ".join(sorted(colours)), libraries[of])
    if names and not known:
        yield "no curve has the name of a library"


def complaints(path, drawn, libraries):
    root = xml.parse(path).getroot()
    if libraries:
        yield from miscoloured(root, libraries)
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
        if drawn and any(touches(a, line) for line in lines(root)):
            yield "'%s' touches a line" % a.words


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--drawn", action="store_true")
    options.add_argument("--colours", type=argparse.FileType())
    options.add_argument("files", nargs="+")
    asked = options.parse_args()
    libraries = dict(line.split() for line in asked.colours or () if line[0] != "#")
    wrong = ["%s: %s" % (path, what) for path in asked.files
             for what in complaints(path, asked.drawn, libraries)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

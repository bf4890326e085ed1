# SPDX-License-Identifier: BSD-3-Clause
"""page - pictures by gnuplot, and the pages papers.md and papers.html.

An item of a page is a Figure or a Table.
"""
import html
import math
import pathlib
import subprocess

from judge import Measured
from lab import Figure, Table

COLOURS = pathlib.Path(__file__).resolve().parent.parent / "compare" / "colours"
LIBRARIES = dict(line.split() for line in COLOURS.read_text().splitlines() if line[:1] != "#")
OURS = f"lc rgb '{LIBRARIES['libportals']}' lw 3 pt 7"
OWN = ["#d08030", "#c060a0", "#805020", "#e0a0a0", "#705090", "#b0a060"]  # further ways of ours
ANSWERS = {True: "yes", False: "NO", None: "unclear"}  # unclear: the rounds do not agree


def tics(curves):
    """Return labels of powers of two, few enough not to overlap."""
    most = max(x for curve in curves for x, _ in curve.points)
    least = min(x for curve in curves for x, _ in curve.points if x)
    every = 4 if most / least > 1024 else 2
    size, words = 1, []
    while size <= most * 2:
        if size >= least / 2:
            text = f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K" if size >= 1024 else size
            words.append(f"'{text}' {size}")
        size *= every
    return ", ".join(map(str, words))


def powers(curves):
    """Return the powers of ten below and above all values."""
    ys = [y for curve in curves for x, y in curve.points if x]
    return math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))


def decades(low, high):
    """Return labels of the powers of ten: 0.1, 1, 10, 100, 1K ..."""
    words = []
    for power in range(low, high + 1):
        text = f"{10 ** (power - 6)}M" if power >= 6 else f"{10 ** (power - 3)}K" if power >= 3 else \
            f"{10.0 ** power:g}"
        words.append(f"'{text}' 1e{power}")
    return ", ".join(words)


def quoted(text):
    """Return the text as a string of gnuplot."""
    return "'" + str(text).replace("'", "''") + "'"


def colour(curve, number):
    """Return the color of the curve's library, or one of those for ways of our own."""
    name = curve.name.lower().replace(" ", "")
    of = max((library for library in LIBRARIES if name.startswith(library)), key=len, default=None)
    return LIBRARIES[of] if of else OWN[number % len(OWN)]


def draw(figure, out):
    """Draw the Figure as OUT/NAME.svg.  The axes are logarithmic, so a point at 0 bytes is
    left to the table of the page."""
    lines, points = [], []
    for number, curve in enumerate(figure.curves):
        style = OURS if curve.ours else f"lc rgb '{colour(curve, number)}' lw 1 pt {number + 1}"
        lines.append(f"'-' using 1:2 with linespoints {style} title {quoted(curve.name)}")
        points += [f"{x} {y:g}" for x, y in curve.points if x] + ["e"]
    low, high = powers(figure.curves)
    script = f"""set terminal svg size 860,500 noenhanced font 'sans,12' background 'white'
set output {quoted(out / (figure.name + '.svg'))}
set title {quoted(figure.title)}
set xlabel {quoted(figure.xlabel)}
set ylabel {quoted(figure.ylabel)}
set key outside right noenhanced
set grid
set logscale x 2
set logscale y
set yrange [1e{low}:1e{high}]
set ytics ({decades(low, high)})
set xtics ({tics(figure.curves)})
plot {', '.join(lines)}
"""
    subprocess.run(["gnuplot"], input=script + "\n".join(points) + "\n", text=True, check=True)


def answer(verdict):
    return f"{ANSWERS[verdict.holds]}: {verdict.data}"


def cell(value):
    """Return the text of a cell: a number has four figures, or all before its point, and no exponent."""
    if value is None or isinstance(value, str):
        return value or ""
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.4g}" if isinstance(value, int) or abs(value) >= 0.001 or not value else f"{value:.6f}"


def table(item):
    """Return the rows of a Table, or of a Figure: the first has the names of the columns."""
    if isinstance(item, Table):
        return [[cell(value) for value in row] for row in (item.header, *item.rows)]
    xs = sorted({x for curve in item.curves for x, _ in curve.points})
    points = [dict(curve.points) for curve in item.curves]
    return [[item.xlabel] + [curve.name for curve in item.curves]] + \
        [[cell(value) for value in (x, *(ys.get(x) for ys in points))] for x in xs]


def told(item):
    return " ".join([f"Paper {item.paper}.", *item.told, *item.notes])


def answers(item):
    """Return the rows that have the verdicts."""
    return [["the shape that the paper claims, or that we ask for", "here"],
            *([v.question, answer(v)] for v in item.verdicts)]


def markdown_rows(rows):
    """Return the lines of a table; one that has a header alone is left out."""
    if len(rows) == 1:
        return []
    text = ["| " + " | ".join(row) + " |" for row in rows]
    return [text[0], "|--|" + "--:|" * (len(rows[0]) - 1), *text[1:], ""]


def markdown(items, head):
    text = ["# The papers' figures, repeated", "", head, ""]
    for item in items:
        text += [f"## {item.title}", "", told(item), ""]
        if isinstance(item, Figure):
            text += [f"![{item.title}]({item.name}.svg)", ""]
        text += markdown_rows(answers(item))
        if isinstance(item, Figure):
            text += [f"{item.ylabel}:", ""]
        text += markdown_rows(table(item))
    return "\n".join(text)


def cells(tag, row):
    return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row) + "</tr>"


def html_rows(rows):
    """Return the lines of a table; one that has a header alone is left out."""
    if len(rows) == 1:
        return []
    return ["<table>", cells("th", rows[0]), *[cells("td", row) for row in rows[1:]], "</table>"]


def values(item):
    """Return the table of an item: that of a Figure, which has a picture, is folded."""
    text = html_rows(table(item))
    if isinstance(item, Table):
        return text
    return [f"<details><summary>{html.escape(item.ylabel)}</summary>", *text, "</details>"]


def picture(item, out):
    if isinstance(item, Table):
        return []
    svg = (out / f"{item.name}.svg").read_text(encoding="utf-8")
    return [svg[svg.index("<svg"):]]


def page(items, head, out):
    """Return the page with all pictures inside."""
    text = ["<!doctype html><meta charset=utf-8><title>The papers' figures, repeated</title>",
            "<style>body{font-family:sans-serif;max-width:900px;margin:auto}td,th{padding:0 .6em;"
            "text-align:right}td:first-child{text-align:left}</style>",
            f"<h1>The papers' figures, repeated</h1><p>{html.escape(head)}</p>"]
    for item in items:
        text += [f"<h2>{html.escape(item.title)}</h2>", f"<p>{html.escape(told(item))}</p>",
                 *picture(item, out), *html_rows(answers(item)), *values(item)]
    return "\n".join(text)


def values_of_rounds(item):
    """Return {curve: {x: values of the rounds}} of a Figure."""
    return {curve.name: {x: y.rounds for x, y in curve.points if isinstance(y, Measured)}
            for curve in item.curves}


def data(item):
    """Return what papers.json has of the item."""
    about = {"title": item.title, "paper": item.paper, "told": item.told, "notes": item.notes,
             "verdicts": [{"question": v.question, "answer": ANSWERS[v.holds], "data": v.data}
                          for v in item.verdicts]}
    if isinstance(item, Table):
        return {**about, "header": item.header, "rows": item.rows}
    return {**about, "x": item.xlabel, "y": item.ylabel,
            "curves": {curve.name: curve.points for curve in item.curves}, "rounds": values_of_rounds(item)}

# SPDX-License-Identifier: BSD-3-Clause
"""page - the pages papers.md and papers.html.

An item of a page is a Figure or a Table.
"""
import html

from figures.lab import Figure, Table
from figures.stats import Measured

TITLE = "The papers' figures, repeated"
MARKS = {"h1": ("# {}", "<h1>{}</h1>"), "h2": ("## {}", "<h2>{}</h2>"), "p": ("{}", "<p>{}</p>"),
         "fold": ("{}:", "<details><summary>{}</summary>"), "end": ("", "</details>")}
ANSWERS = {True: "yes", False: "NO", None: "unclear"}  # unclear: the rounds do not agree


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


def blocks(items, head):
    """Return the parts of a page, in order: kind, and text or rows or the Figure."""
    yield "h1", TITLE
    yield "p", head
    for item in items:
        yield "h2", item.title
        yield "p", " ".join([f"Paper {item.paper}.", *item.told, *item.notes])
        if isinstance(item, Figure):
            yield "picture", item
        yield "rows", [["the shape that the paper claims, or that we ask for", "here"],
                       *([v.question, answer(v)] for v in item.verdicts)]
        if isinstance(item, Figure):
            yield "fold", item.ylabel
        yield "rows", table(item)
        if isinstance(item, Figure):
            yield "end", ""


def markdown(items, head):
    text = []
    for kind, part in blocks(items, head):
        if kind == "picture":
            text += [f"![{part.title}]({part.name}.svg)", ""]
        elif kind != "rows":
            text += [MARKS[kind][0].format(part), ""] * (kind != "end")
        elif len(part) > 1:  # one that has a header alone is left out
            lines = ["| " + " | ".join(row) + " |" for row in part]
            text += [lines[0], "|--|" + "--:|" * (len(part[0]) - 1), *lines[1:], ""]
    return "\n".join(text)


def page(items, head, out):
    """Return the page with all pictures inside."""
    text = [f"<!doctype html><meta charset=utf-8><title>{TITLE}</title>",
            "<style>body{font-family:sans-serif;max-width:900px;margin:auto}td,th{padding:0 .6em;"
            "text-align:right}td:first-child{text-align:left}</style>"]
    for kind, part in blocks(items, head):
        if kind == "picture":
            svg = (out / f"{part.name}.svg").read_text(encoding="utf-8")
            text.append(svg[svg.index("<svg"):])
        elif kind != "rows":
            text.append(MARKS[kind][1].format(html.escape(part)))
        elif len(part) > 1:
            text += ["<table>", *("<tr>" + "".join(f"<td>{html.escape(word)}</td>" for word in row) + "</tr>"
                                  for row in part), "</table>"]
    return "\n".join(text)


def data(item):
    """Return what papers.json has of the item."""
    about = {"title": item.title, "paper": item.paper, "told": item.told, "notes": item.notes,
             "verdicts": [{"question": v.question, "answer": ANSWERS[v.holds], "data": v.data}
                          for v in item.verdicts]}
    if isinstance(item, Table):
        return {**about, "header": item.header, "rows": item.rows}
    return {**about, "x": item.xlabel, "y": item.ylabel,
            "curves": {curve.name: curve.points for curve in item.curves}, "rounds": {curve.name: {x: y.rounds for x, y in curve.points if isinstance(y, Measured)}
                       for curve in item.curves}}

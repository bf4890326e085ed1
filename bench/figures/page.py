# SPDX-License-Identifier: BSD-3-Clause
"""page - the pages papers.md and papers.html.

An item of a page is a Figure or a Table.
"""
import html

from figures import chart
from figures.lab import Figure, Table
from figures.stats import Measured

ANSWERS = {True: "yes", False: "NO", None: "unclear"}  # unclear: the rounds do not agree


def draw(figure, out):
    """Draw the Figure as OUT/NAME.svg.  A point at 0 bytes is left to the table of the page."""
    chart.draw(out / f"{figure.name}.svg", figure.title, figure.xlabel, figure.ylabel, figure.curves)


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

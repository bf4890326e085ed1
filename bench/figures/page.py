# SPDX-License-Identifier: BSD-3-Clause
"""page - the page papers.md, and the data of its items: Figures and Tables."""
from figures.lab import Figure, Table
from figures.stats import Measured

TITLE = "The papers' figures, repeated"
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


def lines_of(rows):
    """Return the lines of a table; one that has a header alone is left out."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|--|" + "--:|" * (len(rows[0]) - 1), *lines[1:], ""] if len(rows) > 1 else []


def markdown(items, head):
    text = [f"# {TITLE}", "", head, ""]
    for item in items:
        text += [f"## {item.title}", "", " ".join([f"Paper {item.paper}.", *item.told, *item.notes]), ""]
        if isinstance(item, Figure):
            text += [f"![{item.title}]({item.name}.svg)", ""]
        text += lines_of([["the shape that the paper claims, or that we ask for", "here"],
                          *([v.question, answer(v)] for v in item.verdicts)])
        if isinstance(item, Figure):
            text += [f"{item.ylabel}:", ""]
        text += lines_of(table(item))
    return "\n".join(text)


def data(item):
    """Return what papers.json has of the item."""
    about = {"title": item.title, "paper": item.paper, "told": item.told, "notes": item.notes,
             "verdicts": [{"question": v.question, "answer": ANSWERS[v.holds], "data": v.data}
                          for v in item.verdicts]}
    if isinstance(item, Table):
        return {**about, "header": item.header, "rows": item.rows}
    return {**about, "x": item.xlabel, "y": item.ylabel,
            "curves": {curve.name: curve.points for curve in item.curves},
            "rounds": {curve.name: {x: y.rounds for x, y in curve.points if isinstance(y, Measured)}
                       for curve in item.curves}}

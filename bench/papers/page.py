# SPDX-License-Identifier: BSD-3-Clause
"""page - pictures by gnuplot, and the pages papers.md and papers.html."""
import html
import math
import subprocess

OURS = "lc rgb '#d00000' lw 3 pt 7"  # as in bench/compare
PALE = ["#8da0cb", "#66a61e", "#e6ab02", "#a6761d", "#40a0a0", "#b294c7"]


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


def decades(curves):
    """Return labels of the powers of ten: 0.1, 1, 10, 100, 1K ..."""
    ys = [y for curve in curves for x, y in curve.points if x]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    words = []
    for power in range(low, high + 1):
        text = f"{10 ** (power - 6)}M" if power >= 6 else f"{10 ** (power - 3)}K" if power >= 3 else \
            f"{10.0 ** power:g}"
        words.append(f"'{text}' 1e{power}")
    return ", ".join(words)


def draw(figure, out):
    """Draw the figure as OUT/NAME.svg.  The axes are logarithmic, so a point at 0 bytes is
    left to the table of the page."""
    lines, data = [], []
    for number, curve in enumerate(figure.curves):
        style = OURS if curve.ours else f"lc rgb '{PALE[number % len(PALE)]}' lw 1 pt {number + 1}"
        lines.append(f"'-' using 1:2 with linespoints {style} title '{curve.name}'")
        data += [f"{x} {y:g}" for x, y in curve.points if x] + ["e"]
    script = f"""set terminal svg size 860,500 noenhanced font 'sans,12' background 'white'
set output '{out / figure.name}.svg'
set title '{figure.title}'
set xlabel '{figure.xlabel}'
set ylabel '{figure.ylabel}'
set key outside right noenhanced
set grid
set logscale x 2
set logscale y
set ytics ({decades(figure.curves)})
set xtics ({tics(figure.curves)})
plot {', '.join(lines)}
"""
    subprocess.run(["gnuplot"], input=script + "\n".join(data) + "\n", text=True, check=True)


def answer(verdict):
    return f"{'yes' if verdict.holds else 'NO'}: {verdict.data}"


def table(figure):
    """Return the rows of a figure: the first has the names of the curves."""
    xs = sorted({x for curve in figure.curves for x, _ in curve.points})
    rows = [[figure.xlabel] + [curve.name for curve in figure.curves]]
    for x in xs:
        values = [dict(curve.points).get(x) for curve in figure.curves]
        rows.append([str(x)] + ["" if y is None else f"{y:.4g}" for y in values])
    return rows


def markdown(figures, head):
    text = ["# The papers' figures, repeated", "", head, ""]
    for figure in figures:
        text += [f"## {figure.title}", "", f"Paper {figure.paper}. {' '.join(figure.told)}", "",
                 f"![{figure.title}]({figure.name}.svg)", "",
                 "| the shape that the paper claims | here |", "|---|---|"]
        text += [f"| {v.question} | {answer(v)} |" for v in figure.verdicts]
        rows = table(figure)
        text += ["", f"{figure.ylabel}:", "", "| " + " | ".join(rows[0]) + " |",
                 "|" + "--:|" * len(rows[0])]
        text += ["| " + " | ".join(row) + " |" for row in rows[1:]] + [""]
    return "\n".join(text)


def cells(tag, row):
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"


def page(figures, head, out):
    """Return the page with all pictures inside."""
    text = ["<!doctype html><meta charset=utf-8><title>The papers' figures, repeated</title>",
            "<style>body{font-family:sans-serif;max-width:900px;margin:auto}td,th{padding:0 .6em;"
            "text-align:right}td:first-child{text-align:left}</style>",
            f"<h1>The papers' figures, repeated</h1><p>{html.escape(head)}</p>"]
    for figure in figures:
        svg = (out / f"{figure.name}.svg").read_text(encoding="utf-8")
        rows = table(figure)
        text += [f"<h2>{html.escape(figure.title)}</h2>",
                 f"<p>Paper {html.escape(figure.paper)}. {html.escape(' '.join(figure.told))}</p>",
                 svg[svg.index("<svg"):],
                 "<table><tr><th>the shape that the paper claims<th>here</tr>",
                 *[cells("td", [v.question, answer(v)]) for v in figure.verdicts], "</table>",
                 f"<details><summary>{html.escape(figure.ylabel)}</summary><table>",
                 cells("th", rows[0]), *[cells("td", row) for row in rows[1:]],
                 "</table></details>"]
    return "\n".join(text)

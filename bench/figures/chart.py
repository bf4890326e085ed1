# SPDX-License-Identifier: BSD-3-Clause
"""chart - pictures of curves and of bars, by gnuplot."""
import dataclasses
import math
import pathlib
import subprocess

COLOURS = pathlib.Path(__file__).resolve().parent / "colours"
LIBRARIES = dict(line.split() for line in COLOURS.read_text().splitlines() if line[:1] != "#")
OURS = f"lc rgb '{LIBRARIES['libportals']}' lw 3 pt 7"
OWN = ["#d08030", "#c060a0", "#805020", "#e0a0a0", "#705090", "#b0a060"]  # further ways of ours
BAR = "#c090a0"  # of a library without a color
HEAD = "set terminal svg size 860,500 noenhanced font 'sans,12' background 'white'\n"
MISSING = "no plots: gnuplot is not there; Debian: apt-get install gnuplot-nox"


@dataclasses.dataclass
class Curve:
    """Points (x, y), or (x, y, low, high), of one line of a figure; ours is the one that has the strong
    color.  style is that of gnuplot, if it is not to follow from the name."""
    name: str
    points: list
    ours: bool = False
    style: str = ""


def quoted(text):
    """Return the text as a string of gnuplot."""
    return "'" + str(text).replace("'", "''") + "'"


def library_colour(name):
    """Return the color of the library with the longest name that this one begins with, or None."""
    name = name.lower().replace(" ", "")
    of = max((library for library in LIBRARIES if name.startswith(library)), key=len, default=None)
    return LIBRARIES.get(of)


def style(curve, number):
    if curve.style or curve.ours:
        return curve.style or OURS
    return f"lc rgb '{library_colour(curve.name) or OWN[number % len(OWN)]}' lw 1 pt {number + 1}"


def prefixed(number, base):
    """Return the text of a number with K or M."""
    return next((f"{number // unit}{name}" for unit, name in ((base * base, "M"), (base, "K")) if number >= unit),
                f"{number:g}")


def powers_of_two(xs):
    """Return labels of powers of two, few enough not to overlap."""
    every = 2 if max(xs) / min(xs) > 1024 else 1
    sizes = (1 << power for power in range(0, 64, every))
    return ", ".join(f"'{prefixed(size, 1024)}' {size}" for size in sizes if min(xs) / 2 <= size <= max(xs) * 2)


def decades(low, high):
    """Return labels of the powers of ten: 0.1, 1, 10, 100, 1K ..."""
    return ", ".join(f"'{prefixed(10 ** power, 1000)}' 1e{power}" for power in range(low, high + 1))


def powers_of_ten(values):
    """Return the powers of ten below and above all values."""
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def axes(curves, base):
    """Return the lines of gnuplot for the axes; x is logarithmic, so a point at 0 is not drawn."""
    xs = [point[0] for curve in curves for point in curve.points if point[0]]
    low, high = powers_of_ten([y for curve in curves for x, *ys in curve.points if x for y in ys])
    text = f"set logscale x {base}\n"
    text += f"set xtics ({powers_of_two(xs) if base == 2 else decades(*powers_of_ten(xs))})\n"
    return text + f"set logscale y\nset yrange [1e{low}:1e{high}]\nset ytics ({decades(low, high)})\n"


def gnuplot(path, title, script):
    text = f"{HEAD}set output {quoted(path)}\nset title {quoted(title)}\n{script}"
    subprocess.run(["gnuplot"], input=text, text=True, check=True)


def draw(path, title, xlabel, ylabel, curves, base=2):
    """Draw curves, if there are any."""
    curves = [curve for curve in curves if any(point[0] for point in curve.points)]
    if not curves:
        return
    lines, points = [], []
    for number, curve in enumerate(curves):
        way = "1:2:3:4 with yerrorlines" if len(curve.points[0]) > 2 else "1:2 with linespoints"
        lines.append(f"'-' using {way} {style(curve, number)} title {quoted(curve.name)}")
        points += [" ".join(f"{v:.9g}" for v in (point[0], *point[1:])) for point in curve.points if point[0]]
        points.append("e")
    gnuplot(path, title, f"set xlabel {quoted(xlabel)}\nset ylabel {quoted(ylabel)}\n"
            f"set key outside right noenhanced\nset grid\n{axes(curves, base)}"
            f"plot {', '.join(lines)}\n" + "\n".join(points) + "\n")


def draw_bars(path, title, ylabel, bars):
    """Draw bars: rows of name, y, low and high."""
    if not bars:
        return
    colours = [library_colour(name) or BAR for name, *_ in bars]
    rows = "\n".join(f'"{name}" {y:g} {low:g} {high:g} 0x{colour[1:]}'
                     for (name, y, low, high), colour in zip(bars, colours))
    gnuplot(path, title, f"""$bars << END
{rows}
END
set ylabel {quoted(ylabel)}
set style fill solid 0.6
set boxwidth 0.6
set yrange [0:*]
set grid y
set xtics font ',10'
plot $bars using 0:2:5:xtic(1) with boxes lc rgb variable notitle, \\
    '' using 0:2:3:4 with yerrorbars lc black notitle
""")

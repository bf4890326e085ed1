# SPDX-License-Identifier: BSD-3-Clause
"""judge - the answers that values of several rounds give.

An answer is True, False, or None: then the rounds do not agree, and the question is not resolved.
"""
import dataclasses
import operator
from functools import partial

from figures.stats import by_rounds, rounds_of

STEP = 1.05  # times the time before it, and more, is a step


@dataclasses.dataclass
class Verdict:
    """A question, and the answer of this run's data: True, False, or None if it is not resolved."""
    question: str
    holds: bool
    data: str


# ---- answers ----

def decide(value, test):
    """Return whether the test holds for a value; None if its rounds do not agree."""
    answers = {bool(test(x)) for x in (float(value), *rounds_of(value, 0))}
    return answers.pop() if len(answers) == 1 else None


def every(answers):
    """Return the answer to all questions at once: False if it is False for one of them."""
    answers = list(answers)
    return False if False in answers else None if None in answers else True


def number(value):
    """Return the text of a number, with three figures or more, and without an exponent."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.01 else f"{value:.4f}"


def rounds_text(value):
    """Return text about the rounds of a value that is not resolved."""
    return f"rounds from {number(min(value.rounds))} to {number(max(value.rounds))}"


def verdict(question, value, test, data):
    holds = decide(value, test)
    return Verdict(question, holds, f"{data}; {rounds_text(value)}" if holds is None else data)


def of_all(question, values, test, data):
    """Return the verdict that the test holds for each of the values."""
    answers = [decide(value, test) for value in values]
    holds = every(answers)
    if holds is None:
        data += f"; one has {rounds_text(list(values)[answers.index(None)])}"
    return Verdict(question, holds, data)


def against(test, question, value, bar, data):
    """Return the verdict that the test holds between the value and a bar."""
    return verdict(question, value, lambda x: test(x, bar), data)


over, under, reaches, at_most = (partial(against, test)
                                 for test in (operator.gt, operator.lt, operator.ge, operator.le))


def within(question, ratio, part, data):
    """Return the verdict that a ratio differs from 1 by at most this part."""
    return verdict(question, ratio, lambda x: abs(1 - x) <= part, data)


def least(question, values, test, text):
    """Return the verdict that the test holds for all {key: value}; text(key, value) describes the
    least of them."""
    key = min(values, key=values.get)
    return of_all(question, values.values(), test, text(key, values[key]))


def all_within(question, values, part, data):
    """Return the verdict that each of the ratios differs from 1 by at most this part."""
    return of_all(question, values, lambda x: abs(1 - x) <= part, data)


# ---- curves ----

def at(points, x):
    return dict(points)[x]


def ratios(points, others, sizes=None):
    """Return {x: ratio of two curves}, for the x of both, and for those of sizes if it is given."""
    others = dict(others)
    return {x: y / others[x] for x, y in points if x in others and (sizes is None or x in sizes)}


def between(low, high, points):
    return [x for x, _ in points if low <= x <= high]


def ahead(question, slow, fast, sizes):
    """Return the verdict that the curve fast is below slow at each of the sizes."""
    return least(question, ratios(slow, fast, sizes), lambda x: x > 1,
                 lambda size, ratio: f"the least ratio is {ratio:.2f}, at {size_text(size)}")


def step(points, inline):
    """Return by how much longer the messages take that are just too long to go inline."""
    below = [ns for size, ns in points if size <= inline]
    above = [ns for size, ns in points if size > inline]
    return above[0] / below[-1] if below and above else 1.0


def has_step(question, points, inline, bar=over):
    jump = step(points, inline)
    return bar(question, jump, STEP, f"{jump:.2f} times the time")


has_no_step = partial(has_step, bar=under)


def half_bandwidth(points):
    """Return the length at which a curve of bandwidth reaches half of its peak."""
    def half_of(curve):
        half = max(y for _, y in curve) / 2
        before = None
        for x, y in curve:
            if y >= half:
                x0, y0 = before or (x, 0)
                return x0 + (x - x0) * (half - y0) / (y - y0)
            before = (x, y)
    return by_rounds(half_of, points)


def falls_off(points, most):
    """Return the bandwidth at the length most, against the peak up to there."""
    return by_rounds(lambda curve: at(curve, most) / max(y for x, y in curve if x <= most), points)


def size_text(size):
    for unit, name in ((1 << 20, " MiB"), (1 << 10, " KiB")):
        if size >= unit:
            return f"{size / unit:.3g}{name}"
    return f"{size:.0f} B"

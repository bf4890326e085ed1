# SPDX-License-Identifier: BSD-3-Clause
"""stats - medians, spreads and paired ratios of values of several turns.

A Measured value is the median of the rounds, and keeps each of them.  Arithmetic with such values
works round by round, so the ratio of two sides compares the runs of one round.
"""
import collections
import operator
import statistics

Spread = collections.namedtuple("Spread", "n min p10 median p90 max")


def median(values):
    """Return the median of these values, or None if there are none."""
    values = list(values)
    return statistics.median(values) if values else None


def spread(values):
    """Return the Spread of these values, or None if there are none."""
    v = sorted(values)
    n = len(v)
    return Spread(n, v[0], v[n // 10], statistics.median(v), v[n * 9 // 10], v[-1]) if v else None


def paired(ours, others, ratio):
    """Return the ratios of {turn: value} of two sides, for the turns that both have."""
    return [ratio(value, others[turn]) for turn, value in ours.items() if turn in others]


def collect(table, key, turn, value):
    """Add the value of a turn to {key: {turn: value}}."""
    table.setdefault(key, {})[turn] = value


class Measured(float):
    """The median of the values of the rounds."""

    def __new__(cls, values, middle=None):
        self = super().__new__(cls, statistics.median(values) if middle is None else middle)
        self.rounds = [float(value) for value in values]
        return self


def rounds_of(value, count):
    """Return the values of this number of rounds; those of a constant are the same."""
    return value.rounds if isinstance(value, Measured) else [value] * count


def round_by_round(operation, reverse=False):
    """Return a method of Measured that applies the operation to the medians, and in each round."""
    def apply(self, other):
        pairs = list(zip(self.rounds, rounds_of(other, len(self.rounds))))
        pairs.append((float(self), float(other)))
        *values, middle = [operation(b, a) if reverse else operation(a, b) for a, b in pairs]
        return Measured(values, middle)
    return apply


for name in ("add", "sub", "mul", "truediv"):
    method = getattr(operator, name)
    setattr(Measured, f"__{name}__", round_by_round(method))
    setattr(Measured, f"__r{name}__", round_by_round(method, reverse=True))


def medians(seen):
    """Turn {key: [values of the rounds]} into {key: Measured}."""
    return {key: Measured(values) for key, values in seen.items()}


def by_rounds(function, *curves):
    """Return function(*curves) of the medians as a Measured value, with that of each round."""
    count = max((len(y.rounds) for curve in curves for _, y in curve if isinstance(y, Measured)), default=1)
    values = [function(*([(x, rounds_of(y, count)[i]) for x, y in curve] for curve in curves))
              for i in range(count)]
    return Measured(values, function(*([(x, float(y)) for x, y in curve] for curve in curves)))

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Test the functions of judge.py, and the verdicts of the papers, with data that must give
yes, NO and unclear."""
import sys
import unittest

sys.dont_write_bytecode = True  # the folder of the source stays as it is

import judge  # noqa: E402
from judge import Measured  # noqa: E402

UP, DOWN, MIXED = Measured([2, 3, 4]), Measured([0.2, 0.3, 0.4]), Measured([0.8, 1.5, 1.6])


def curve(*ys, start=1):
    """Return a curve at start, 2 * start, 4 * start ..."""
    return [(start << i, y) for i, y in enumerate(ys)]


class Values(unittest.TestCase):
    def test_value_is_the_median(self):
        self.assertEqual(Measured([5, 1, 3]), 3)

    def test_arithmetic_goes_round_by_round(self):
        ratio = Measured([2, 4, 9]) / Measured([1, 4, 3])
        self.assertEqual(ratio.rounds, [2, 1, 3])
        self.assertAlmostEqual(ratio, 4 / 3)

    def test_constants_stand_on_both_sides(self):
        self.assertEqual((12 / Measured([2, 3, 4])).rounds, [6, 4, 3])
        self.assertEqual((1 - Measured([2, 3, 4])).rounds, [-1, -2, -3])
        self.assertEqual(sum([Measured([1, 2]), Measured([3, 4])]).rounds, [4, 6])

    def test_by_rounds_sees_each_round(self):
        peak = judge.by_rounds(lambda c: max(y for _, y in c), curve(Measured([1, 9, 2]), 4.0))
        self.assertEqual(peak.rounds, [4, 9, 4])
        self.assertEqual(peak, 4)

    def test_by_rounds_takes_plain_numbers(self):
        self.assertEqual(judge.by_rounds(lambda c: c[0][1], curve(5.0)).rounds, [5])


class Answers(unittest.TestCase):
    def test_decide(self):
        for value, answer in ((UP, True), (DOWN, False), (MIXED, None), (2, True), (0.5, False)):
            self.assertIs(judge.decide(value, lambda x: x > 1), answer)

    def test_every(self):
        for answers, answer in (((True, True), True), ((True, None), None), ((None, False), False)):
            self.assertIs(judge.every(answers), answer)

    def test_bars(self):
        for function, bar, answer in ((judge.over, 2, False), (judge.reaches, 2, True),
                                      (judge.under, 2, False), (judge.at_most, 2, True)):
            self.assertIs(function("", 2, bar, "").holds, answer)

    def test_within(self):
        for value, answer in ((1.2, True), (0.79, False), (1.21, False), (Measured([1.1, 1.1, 1.3]), None)):
            self.assertIs(judge.within("", value, 0.2001, "").holds, answer)

    def test_unclear_tells_the_rounds(self):
        self.assertEqual(judge.over("", MIXED, 1, "data").data, "data; rounds from 0.8 to 1.6")

    def test_least(self):
        def holds(*values):
            found = judge.least("", dict(enumerate(values)), lambda x: x > 1, lambda key, value: f"{key}")
            return found.holds, found.data.partition(";")[0]
        self.assertEqual(holds(UP, UP * 2), (True, "0"))
        self.assertEqual(holds(UP, DOWN), (False, "1"))
        self.assertEqual(holds(UP, MIXED), (None, "1"))
        self.assertEqual(holds(MIXED, DOWN), (False, "1"))

    def test_all_within(self):
        for values, answer in (((1.0, 1.1), True), ((1.0, 2.0), False), ((1.0, MIXED), None)):
            self.assertIs(judge.all_within("", dict(enumerate(values)), 0.2, "").holds, answer)


class Curves(unittest.TestCase):
    def test_ahead(self):
        fast = curve(1.0, 1.0, 1.0)
        for slow, answer in ((curve(2, 3, 4), True), (curve(2, 0.5, 4), False), (curve(2, MIXED, 4), None)):
            self.assertIs(judge.ahead("", slow, fast, [1, 2, 4]).holds, answer)
        self.assertIs(judge.ahead("", curve(2, 0.5, 4), fast, [1, 4]).holds, True)

    def test_step(self):
        points = [(8, 9.0), (12, 10.0), (13, 15.0), (16, 30.0)]
        self.assertEqual(judge.step(points, 12), 1.5)
        self.assertEqual(judge.step(points, 12, 2), 22.5 / 9.5)
        self.assertEqual(judge.step(points, 16), 1)  # nothing is longer
        self.assertEqual(judge.step(points, 4), 1)  # nothing is shorter

    def test_has_step(self):
        for above, has, has_not in ((11.0, True, False), (10.1, False, True),
                                    (Measured([10, 11, 12]), None, None)):
            points = [(12, 10.0), (13, above)]
            self.assertIs(judge.has_step("", points, 12).holds, has)
            self.assertIs(judge.has_no_step("", points, 12).holds, has_not)

    def test_half_bandwidth(self):
        self.assertEqual(judge.half_bandwidth([(1, 2), (3, 6), (5, 8)]), 2)
        self.assertEqual(judge.half_bandwidth([(1, 5), (3, 6)]), 1)
        points = [(1, 2), (3, Measured([4, 6, 8])), (5, 8)]
        self.assertEqual(judge.half_bandwidth(points).rounds, [3, 2, 1 + 4 / 6])

    def test_falls_off(self):
        self.assertEqual(judge.falls_off(curve(5, 10, 8, 99), 4), 0.8)
        self.assertEqual(judge.falls_off(curve(5, 10, 12, 99), 4), 1)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Test the statistics and answers of this package, the choice of CPUs, the ratios of compare, and the verdicts
of the papers, with data that must give yes, NO and unclear."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the folder of the source stays as it is
BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path[:1] = [str(BENCH), str(BENCH / "papers"), str(BENCH / "compare")]

import ablation  # noqa: E402
import bypass  # noqa: E402
import netpipe  # noqa: E402
import paper1  # noqa: E402
import paper2  # noqa: E402
import paper3  # noqa: E402
import paper4  # noqa: E402
import tally  # noqa: E402
from figures import judge, page, run  # noqa: E402
from figures.stats import Measured, by_rounds, collect  # noqa: E402

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
        peak = by_rounds(lambda c: max(y for _, y in c), curve(Measured([1, 9, 2]), 4.0))
        self.assertEqual(peak.rounds, [4, 9, 4])
        self.assertEqual(peak, 4)

    def test_by_rounds_takes_plain_numbers(self):
        self.assertEqual(by_rounds(lambda c: c[0][1], curve(5.0)).rounds, [5])


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
            self.assertIs(judge.all_within("", values, 0.2, "").holds, answer)


class Curves(unittest.TestCase):
    def test_ahead(self):
        fast = curve(1.0, 1.0, 1.0)
        for slow, answer in ((curve(2, 3, 4), True), (curve(2, 0.5, 4), False), (curve(2, MIXED, 4), None)):
            self.assertIs(judge.ahead("", slow, fast, [1, 2, 4]).holds, answer)
        self.assertIs(judge.ahead("", curve(2, 0.5, 4), fast, [1, 4]).holds, True)

    def test_step(self):
        points = [(8, 9.0), (12, 10.0), (13, 15.0), (16, 30.0)]
        self.assertEqual(judge.step(points, 12), 1.5)
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


class Papers(unittest.TestCase):
    """The verdicts of the papers' modules."""

    def answer(self, verdict, answer):
        self.assertIs(verdict.holds, answer, verdict.question + ": " + verdict.data)

    def test_price_of_interrupts(self):
        def answers(futex):
            ns = {("futex", "one", "p50_ns"): futex, ("poll", "two", "p50_ns"): 100.0}
            return [v.holds for v in bypass.dear(ns, [("futex", "one"), ("poll", "two")])]
        self.assertEqual(answers(900.0), [True])
        self.assertEqual(answers(150.0), [False])
        self.assertEqual(answers(Measured([150, 250, 300])), [None])
        self.assertEqual(list(bypass.dear({}, [("futex", "one")])), [])

    def test_stolen_time_counts_both_threads(self):
        generic = {"nic_ns": 10.0, "kernel_ns": 20.0}
        for nic, answer in ((25.0, True), (35.0, False), (Measured([20, 25, 40]), None)):
            self.answer(bypass.frees(2, {"nic_ns": nic, "kernel_ns": 0.0}, generic), answer)
        none = {"nic_ns": Measured([0, 0]), "kernel_ns": Measured([0, 0])}
        self.answer(bypass.frees(2, none, none), False)

    def test_parts(self):
        for ratio, answer in ((1.2, True), (0.9, False), (MIXED, None)):
            self.answer(ablation.useful("", ablation.COSTS, ratio), answer)
        for ratio, answer in ((0.9, True), (1.2, False), (MIXED, None)):
            self.answer(ablation.useful("", ablation.SAVES, ratio), answer)

    def test_modes_meet(self):
        def streams(bidir):
            return {"accelerated": dict.fromkeys(paper1.TESTS, [(8, 10.0)]),
                    "generic": {**dict.fromkeys(paper1.TESTS, [(8, 9.0)]), "bidir": [(8, bidir)]}}
        for bidir, answer in ((8.5, True), (7.0, False), (13.0, False), (Measured([7, 9, 10]), None)):
            self.answer(paper1.meets(streams(bidir), 8, ""), answer)

    def test_accelerated_is_ahead_in_each_operation(self):
        def measured(get):
            return {"accelerated": dict.fromkeys(paper1.TESTS, curve(1.0, 1.0)),
                    "generic": {**dict.fromkeys(paper1.TESTS, curve(2.0, 2.0)), "get": curve(2.0, get)}}
        for get, answer in ((3.0, True), (0.5, False), (MIXED, None)):
            self.answer(paper1.faster("", measured(get), 2), answer)
        self.answer(paper1.faster("", measured(0.5), 1), True)  # the size is too long

    def test_unlinking(self):
        for match, answer in ((1.0, True), (3.0, False), (Measured([1, 1, 3]), None)):
            self.answer(paper3.unlinking({paper3.steps.MATCH: match, paper3.steps.UNLINK: 1.0}), answer)

    def test_sum_of_steps_names_the_missing(self):
        self.assertEqual(paper3.with_total([["A", 1.0], ["Drop", None]])[-1][:2],
                         ["Total, here without: drop", 1])
        self.assertEqual(paper3.with_total([["A", 1.0], ["B", 2.0]])[-1][:2], ["Total", 3])

    def test_competitor_is_ahead(self):
        theirs = curve(1.0, 2.0, 4.0, 8.0)
        for ours, answer in ((0.5, True), (3.0, False), (Measured([1, 1.5, 2.5]), None)):
            self.answer(paper3.behind(curve(0.5, ours, 3.9, 8.0), theirs), answer)
        self.answer(paper3.behind(curve(0.5, 1.0, start=4), curve(8.0, 8.0)), None)  # no size is before it

    def test_both_meet_at_the_last_size(self):
        for last, answer in ((9.0, True), (5.0, False), (Measured([5, 9, 9]), None)):
            self.answer(paper3.meet(curve(1.0, last), curve(1.0, 10.0))[1], answer)

    def test_twice_the_bandwidth(self):
        for both, answer in ((19.0, True), (13.0, False), (Measured([13, 19, 20]), None)):
            of = {("generic", "put"): curve(5.0, 10.0), ("generic", netpipe.BIDIR): curve(5.0, both)}
            self.answer(netpipe.twice("generic", "", of), answer)

    def test_half_of_the_peak_counts_both_ways(self):
        points = [(4, 5.0), (8, 10.0)]
        of = {("generic", "put"): points, ("generic", netpipe.BIDIR): points}
        self.assertEqual(netpipe.halves(of, "generic"), [4, 8])

    def test_half_of_generic_time(self):
        for generic, answer in ((5.0, True), (3.0, False), (Measured([3, 5, 6]), None)):
            ns = {paper4.UU: [(0, 1.0), (8, 9.0)], paper4.RO: [(0, 2.0), (8, 9.0)],
                  paper4.GEN: [(0, generic), (8, 9.0)]}
            self.answer(paper4.ahead_of_generic("", ns, [0]), answer)

    def test_inline_payload_saves_time(self):
        for some, answer in ((5.0, True), (15.0, False), (Measured([5, 6, 12]), None)):
            self.answer(paper2.saved([(8, 10.0)], [(8, some)]), answer)

    def test_bandwidth_runs_out(self):
        for last, answer in ((140.0, True), (160.0, False), (Measured([140, 149, 160]), None)):
            self.answer(paper4.runs_out([(8, 1.0), (16, 2.0), (2048, 100.0), (4096, last)]), answer)


class Siblings(unittest.TestCase):
    """The CPUs that compare takes for nodes beside busy siblings."""

    def expect(self, lists, *answers):
        with tempfile.TemporaryDirectory() as tree:
            for cpu, text in enumerate(lists):
                folder = pathlib.Path(tree, f"cpu{cpu}/topology")
                folder.mkdir(parents=True)
                (folder / "thread_siblings_list").write_text(text + "\n")
            for cpus, answer in answers:
                self.assertEqual(run.siblings(tree, run.cpu_list(cpus)), answer, cpus)

    def test_siblings(self):
        self.expect(["0", "1"], ("0-1", None))
        self.expect(["0-1", "0-1"], ("0,1", None))  # one core
        self.expect(["0-1", "0-1", "2-3", "2-3"], ("0-3", [(0, 2), (1, 3)]),
                    ("0,2-3", None), ("1-3", None))  # siblings that this job may not use
        self.expect(["0,4", "1,5", "2,6", "3,7"] * 2, ("0-7", [(0, 1), (4, 5)]), ("1-3,5-7", [(1, 2), (5, 6)]),
                    ("2,3", None))
        self.expect(["0-3"] * 4 + ["4-7"] * 4, ("0-3", None), ("0-7", [(0, 4), (1, 5)]))  # four threads a core
        self.expect([], ("0-1", None))


class Tally(unittest.TestCase):
    """The slots of a round count once, a slot without one of the two counts nowhere, and the ratio is the median
    of the rounds' ratios, not the ratio of the medians."""
    LATENCY = {"ours": {(1, 0): 100, (2, 0): 200, (3, 0): 300, (4, 0): 7},
               "openmpi": {(1, 0): 250, (2, 0): 600, (3, 0): 150, (5, 1): 9}}
    # Two slots a round: medians 30 and 20 in round 1; 10 and 20 in round 2.
    RATE = {"ours": {(1, 0): 20, (1, 1): 40, (2, 0): 10}, "raw_sketch": {(1, 0): 10, (1, 1): 30, (2, 0): 20}}
    LINES = ["8 B half round trip / Open MPI 3 2.50 0.50 3.00 200 250 ns",
             "8 B rate / bare design 2 1.00 0.50 1.50 20 20 M/s",
             "8 B rate / Open MPI not measured: openmpi, rate 8", "left out: a peer: gone",
             "latency 8 openmpi 4 200 ns 9 600 2.50 0.50 3.00"]

    def test_lines(self):
        samples, text = {}, io.StringIO()
        for test, table in (("latency", self.LATENCY), ("rate", self.RATE)):
            for who, values in table.items():
                for turn, value in values.items():
                    collect(samples, (test, 8, who), turn, value)
        with contextlib.redirect_stdout(text):
            tally.tally(samples, "fixed", ["a peer: gone"])
        lines = [" ".join(line.split()) for line in text.getvalue().splitlines()]
        for line in self.LINES:
            self.assertIn(line, lines)

    def test_partners(self):
        samples = {("stream", 8, who): {(1, 0): value} for who, value in (
            ("ours", 10), ("ours_heap", 40), ("raw_memcpy", 20), ("old_heap", 80))}
        self.assertIsNone(tally.ratios_of(samples, "stream", 8, "ours"))
        for who, ratio in (("ours_heap", 2), ("raw_memcpy", 0.5), ("old_heap", 0.5)):
            self.assertEqual(tally.ratios_of(samples, "stream", 8, who).median, ratio)


class Page(unittest.TestCase):
    def test_cells_have_no_exponents(self):
        for value, text in ((12520.0, "12,520"), (1000, "1,000"), (999.9, "1,000"), (12.3456, "12.35"),
                            (0, "0"), (0.00001, "0.000010"), (None, ""), ("a", "a"),
                            (Measured([2, 3]), "2.5")):
            self.assertEqual(page.cell(value), text)

    def test_answers(self):
        for holds, text in ((True, "yes: x"), (False, "NO: x"), (None, "unclear: x")):
            self.assertEqual(page.answer(judge.Verdict("", holds, "x")), text)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""peers - the ping-pongs of bench/compare over Portals and over Open MPI, in turns."""
import pathlib
import tempfile
from functools import partial

from figures import run
from figures.lab import ACCELERATED, curves

PORTALS, OPEN_MPI = "Portals", "Open MPI"


class Peers:
    """The two sides of a comparison; missing is a sentence if Open MPI is not there."""

    def __init__(self, lab):
        self.lab = lab
        self.scale = "quick" if lab.quick else "full"
        self.work = tempfile.TemporaryDirectory()
        self.sides = {PORTALS: ([*lab.two_nodes(), lab.bin / "peer_portals", "ours", self.scale], {})}
        mpi = run.Mpi("openmpi")
        self.missing = "" if mpi.is_there() else \
            f"The comparison with Open MPI is missing: {mpi.missing().partition(': ')[2]}."
        if not self.missing:
            start, env = mpi.start(2, lab.quick)  # a test has no CPU for itself
            program = mpi.build_peer(pathlib.Path(self.work.name))
            self.sides[OPEN_MPI] = [*start, program, mpi.name, self.scale], env

    def notes(self):
        """Return the notes of a figure that compares both sides."""
        return [self.missing] if self.missing else []

    def once(self, side, tests):
        """Run tests, {test: values of x}, once on a side.  Return {(test, x): ns}."""
        command, env = self.sides[side]
        try:
            rows = run.peer_lines(command, tests, env={**ACCELERATED, **env})
        except run.Failed as why:
            run.die(1, why)
        return {(test, x): value for _, test, x, value in rows}

    def measure(self, tests, others=None):
        """Run tests on each side, and others, {name: function as of Lab.turns}, in turns.  Return
        {side or name: {test: [(x, ns)]}}."""
        ways = {side: partial(self.once, side, tests) for side in self.sides}
        return {side: curves(values) for side, values in self.lab.turns({**ways, **(others or {})}).items()}

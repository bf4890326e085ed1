# SPDX-License-Identifier: BSD-3-Clause
"""peers - the ping-pongs of bench/compare over Portals and over Open MPI, in turns."""
import pathlib
import subprocess
import tempfile

from lab import ACCELERATED, medians

MPI = pathlib.Path(__file__).resolve().parent / "mpi"
PORTALS, OPEN_MPI = "Portals", "Open MPI"


class Peers:
    """The two sides of a comparison; missing is a sentence if Open MPI is not there."""

    def __init__(self, lab):
        self.lab = lab
        self.scale = "quick" if lab.quick else "full"
        self.work = tempfile.TemporaryDirectory()
        there = subprocess.run([MPI, "there"], stdout=subprocess.PIPE, text=True, check=False)
        self.missing = ""
        if there.returncode != 0:
            self.missing = f"The comparison with Open MPI is missing: {there.stdout.strip()}."
        if not self.missing:
            lab.run("peer_mpi's build", [MPI, "build", self.work.name], {})

    def notes(self):
        """Return the notes of a figure that compares both sides."""
        return [self.missing] if self.missing else []

    def sides(self):
        """Return the command of each side."""
        portals = [*self.lab.two_nodes(), self.lab.bin / "peer_portals", "ours", self.scale]
        mpi = [MPI, "run", self.work.name, self.scale]
        return {PORTALS: portals} if self.missing else {PORTALS: portals, OPEN_MPI: mpi}

    def measure(self, tests):
        """Run tests, {test: values of x}, on each side in turns.  Return {side: {test: [(x, ns)]}},
        the medians of the rounds."""
        seen = {}
        words = [f"{test}={','.join(map(str, xs))}" for test, xs in tests.items()]
        for _ in range(self.lab.rounds):
            for side, command in self.sides().items():
                lines, _ = self.lab.run(side, command + words, ACCELERATED)
                for _, test, x, value in map(str.split, lines.splitlines()):
                    seen.setdefault((side, test, int(x)), []).append(float(value))
        values = medians(seen)
        return {side: {test: [(x, values[side, test, x]) for x in xs] for test, xs in tests.items()}
                for side in self.sides()}

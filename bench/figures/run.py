# SPDX-License-Identifier: BSD-3-Clause
"""run - the programs of a command of bench: its options, the CPUs, starting them, and what they print."""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
BIN = ROOT / "build/release/bin"
NAME = pathlib.Path(sys.argv[0]).name
NOT_THERE = 77  # the status if something is missing
PATIENCE = 5  # seconds between TERM and KILL
TRIES = 60  # of a client until its server listens


class Failed(Exception):
    """A program failed, which is not what was measured."""


def say(text):
    print(f"{NAME}: {text}", file=sys.stderr, flush=True)


def die(status, text):
    say(text)
    sys.exit(status)


def main(function):
    """Run the main function of a program, which ends where another program fails."""
    try:
        sys.exit(function())
    except Failed as why:
        die(1, why)


# ---- options ----

def numbers(least, most, example="8,64"):
    """Return a type of options: a list of whole numbers."""
    def parse(text):
        found = [int(word) for word in text.split(",") if re.fullmatch(r"[0-9]{1,9}", word)]
        if len(found) != text.count(",") + 1:
            raise argparse.ArgumentTypeError(f"'{text}'; expected numbers, as in {example}")
        for number in found:
            if not least <= number <= most:
                raise argparse.ArgumentTypeError(f"'{number}'; expected {least} to {most}")
        return found
    return parse


def count(text):
    """A type of options: a number of rounds."""
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"'{text}'; expected 1 to 999999")
    return int(text)


def some_of(known):
    """Return a type of options: a list of some of these words."""
    def parse(text):
        for word in text.split(","):
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}'; expected some of {','.join(known)}")
        return text.split(",")
    return parse


def options(about, status, folder=BIN, needs="yod"):
    """Return a parser of options that has --bin."""
    p = argparse.ArgumentParser(prog=NAME, description=about, epilog=f"status: {status}", allow_abbrev=False,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", type=pathlib.Path, default=folder, metavar="DIR",
                   help=f"with {needs}" + "; default: build/release/bin of this tree" * bool(folder))
    return p


def need(folder, programs, status=NOT_THERE):
    """Return the folder's absolute path; end if one of the programs is not there."""
    for program in programs:
        if not os.access(folder / program, os.X_OK):
            die(status, f"{folder / program} is not there; expected it; build bench/, or use --bin")
    return folder.resolve()


def folder_for_results(path):
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        die(1, f"--out: {path} cannot be made: {why.strerror}; expected a directory")
    return path.resolve()


def write_json(path, document):
    """Write a document to a file; - is stdout."""
    text = json.dumps(document, indent="\t") + "\n"
    try:
        sys.stdout.write(text) if path == "-" else pathlib.Path(path).write_text(text, encoding="utf-8")
    except OSError as why:
        die(1, f"--json: {path}: {why.strerror}; expected a file")


# ---- the machine ----

def have(*programs):
    return all(map(shutil.which, programs))


def cpu_list(text):
    """Return the numbers of a list: 0-2,5 is 0, 1, 2, 5."""
    ends = [word.split("-") for word in text.strip().split(",") if word]
    return [cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)]


def siblings(topology, cpus):
    """Return two CPUs of two cores, and two beside them on the same cores; None if there are none."""
    used, pairs = set(), []
    for cpu in cpus:
        file = pathlib.Path(topology, f"cpu{cpu}/topology/thread_siblings_list")
        core = cpu_list(file.read_text()) if file.is_file() else []
        others = [other for other in core if other != cpu and other in cpus]
        if cpu not in used and others:
            pairs.append((cpu, others[0]))
            used.update(core)
    return list(zip(*pairs[:2])) if len(pairs) > 1 else None


def machine():
    """Return a line about the machine, its load and this tree."""
    load = os.getloadavg()[0]
    tree = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
    return (f"{platform.node()} {platform.release()}, {os.cpu_count()} CPUs, load {load:.2f} before, "
            f"{tree}")


def stolen():
    """Return the ticks that the hypervisor took, and all ticks."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


# ---- starting programs ----

def pinned(cpus):
    return (lambda: os.sched_setaffinity(0, cpus)) if cpus else None


def end(process):
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def output(command, env=None, cpus=None, limit=600, name="", alone=False):
    """Return what a command says, on stdout and on stderr; it must end well within the limit of seconds.
    It is called name where it fails.  Its environment is env alone, or added to that of this program."""
    words = [str(word) for word in command]
    name = name or " ".join(words)
    try:
        process = subprocess.Popen(words, env={**({} if alone else os.environ), **(env or {})},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=pinned(cpus))
    except OSError as why:
        raise Failed(f"{words[0]}: {why.strerror}") from None
    try:
        said = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        end(process)
        raise Failed(f"{name} takes longer than {limit} s") from None
    except BaseException:
        end(process)
        raise
    if process.returncode:
        last = "\n".join((said[1].strip() or said[0].strip()).splitlines()[-3:])
        raise Failed(f"{name}: status {process.returncode}: {last or 'no message'}")
    return said


def job(folder, nodes, program, words, env=None, **more):
    """Return the JSON of a program of bench in a job of this number of nodes."""
    command = [folder / "yod", "-sz", nodes, folder / program, *words, "--json", "-"]
    document = json.loads(output(command, env, **more)[0])
    if document.get("errors"):
        raise Failed(f"{program} found {document['errors']} errors; expected none; see its output")
    return document


def served(server, client, cpus=(None, None), limit=600, env=None):
    """Return what a client says; it is tried until it works, or its server has ended."""
    process = subprocess.Popen([str(word) for word in server], env={**os.environ, **(env or {})},
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=pinned(cpus[1]))
    try:
        for tries in range(TRIES):
            time.sleep(0.3)  # pause: between two tries
            try:
                return output(client, env, cpus[0], limit)[0]
            except Failed as why:
                if process.poll() is not None or tries == TRIES - 1 or "takes longer" in str(why):
                    raise
    finally:
        end(process)


def peer_lines(command, tests, **more):
    """Run a program of compare/peer.h with {test: values of x}; return rows of who, test, x, value, and p99 if the
    command says tails."""
    words = [f"{test}={','.join(map(str, xs))}" for test, xs in tests.items() if xs]
    if not words:
        return []
    rows = [line.split("\t") for line in output([*command, *words], **more)[0].splitlines()]
    return [(who, test, int(x), *map(float, values)) for who, test, x, *values in rows]


def pingpong_us(said):
    """Return the microseconds of fi_pingpong's line."""
    return float(next(line.split() for line in said.splitlines() if line[:1].isdigit())[6])


def compiles(compiler, header, body, *libraries):
    """Does a program compile that includes this header?"""
    source = f"#include <{header}>\nint main(void) {{ {body} }}\n"
    return have(compiler) and subprocess.run([compiler, "-x", "c", "-", "-o", "/dev/null", *libraries], input=source,
                                             text=True, stderr=subprocess.DEVNULL, check=False).returncode == 0


def build(program, compiler, sources, *libraries):
    """Build a program of compare/peer.h, and return its name; end if that fails."""
    words = [compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O3", BENCH / "compare/peer.c", *sorted(sources), "-o", program,
             *libraries]
    try:
        output(words, name=f"{compiler}, which builds {program}")
    except Failed as why:
        die(1, why)
    return program


class Mpi:
    """An MPI, openmpi or mpich, and peer_mpi over it."""
    TITLES = {"openmpi": "Open MPI", "mpich": "MPICH"}
    PACKAGES = {"openmpi": "openmpi-bin libopenmpi-dev", "mpich": "mpich libmpich-dev"}

    def __init__(self, name):
        self.name, self.title = name, self.TITLES[name]
        self.rooted = ["--allow-run-as-root"] * (os.geteuid() == 0)

    def missing(self):
        """Return what brings it if no program can be built with it, or ""."""
        there = have(f"mpirun.{self.name}") and compiles(f"mpicc.{self.name}", "mpi.h", "return MPI_Finalize();")
        return "" if there else \
            f"{self.name}: it is not there, or incomplete; Debian: apt-get install {self.PACKAGES[self.name]}"

    def build_peer(self, folder):
        """Build peer_mpi, or return a sentence about a figure that lacks it."""
        missing = self.missing().partition(": ")[2]
        if missing:
            return f"The comparison with {self.title} is missing: {missing}."
        self.program = build(folder / f"peer_mpi.{self.name}", f"mpicc.{self.name}",
                             (BENCH / "compare/mpi").glob("*.c"), "-lpthread")
        return ""

    def peer(self, nodes, yields, *words):
        """Return a command of peer_mpi, and its variables."""
        start, env = self.start(nodes, yields)
        return [*start, self.program, *words], env

    def label(self, nodes):
        """MPICH with the device ch4 does not yield with any setting (4.0.2): with more nodes than CPUs its
        figures are those of time slices."""
        spins = self.name == "mpich" and nodes > (os.cpu_count() or 1) and have("mpichversion") and \
            "ch4" in output(["mpichversion"])[0]
        return "mpich-spins" if spins else self.name

    def start(self, nodes, yields):
        """Return the beginning of a command, and its variables.  Programs pin themselves, as ours do."""
        if self.name == "openmpi":
            return ["mpirun.openmpi", *self.rooted, "--bind-to", "none", "--oversubscribe", "-np", nodes], \
                {"OMPI_MCA_mpi_yield_when_idle": str(int(yields)),
                 "OMPI_MCA_btl_base_warn_component_unused": "0"}
        return ["mpirun.mpich", "-bind-to", "none", "-np", nodes], \
            {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1" if yields else "1000"}

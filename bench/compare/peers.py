# SPDX-License-Identifier: BSD-3-Clause
"""peers - libportals, the other libraries, and the machine's limits, as compare runs them.

A peer has a name; missing(): what brings it, or ""; tests: the patterns that it has; build(folder);
and rows(turn): rows of who, test, x, value.  lacks is a sentence about patterns that cannot run.
"""
import dataclasses
import os
import pathlib
import socket
import subprocess

from figures import run
from figures.run import Mpi, have, job, output, peer_lines, served

ALL = ["latency", "stream", "rate", "match", "alltoall", "eqget", "ack", "get", "am", "queues", "threads"]
PROVIDED = ["latency", "stream", "rate", "match", "overlap", "faa"]  # over libfabric's provider portals
BUSY = ["latency", "rate", "ack", "get", "am"]  # which have 8 bytes, and make sense beside busy siblings
BY_SHARED_HEAP = 16384  # shorter messages go through the lane, from any buffers
LIMIT = 600


@dataclasses.dataclass
class Turn:
    """What a slot wants of a peer, and where."""
    bin: pathlib.Path
    work: pathlib.Path  # for programs that are built
    quick: bool
    wanted: list
    x: dict  # {test: values of x}
    cpus: list  # of two nodes
    pinned: bool = False  # run on these CPUs only

    def want(self, *tests):
        """Return {test: values of x} of those of these tests that are wanted."""
        return {test: self.x[test] for test in tests if test in self.wanted}

    def here(self):
        return set(self.cpus) if self.pinned else None

    def scale(self):
        return "quick" if self.quick else "full"

    def iterations(self, size):
        return 100 if self.quick else 20000 if size <= 1024 else 5000 if size <= 65536 else 500

    def served(self, server, client, env=None):
        first, second = self.cpus
        return served(server, client, ({first}, {second}), LIMIT, env)

    def pingpong(self, provider, size, env=None, *more):
        """Return the ns of fi_pingpong over a provider of libfabric."""
        command = ["fi_pingpong", "-p", provider, "-e", "rdm", *more, "-I", self.iterations(size), "-S", size]
        return run.pingpong_us(self.served(command, [*command, "127.0.0.1"], env)) * 1000


# ---- libportals ----

# Which of a program's rows: test, x (a column, or a number), value; the rows in which a column has a value.
PICKS = {
    "portalperf": [("latency", "bytes", "p50_ns", "test", "put"), ("stream", "bytes", "MB_per_s", "test", "stream"),
                   ("rate", "bytes", "Mmsg_per_s", "test", "rate"), ("ack", "bytes", "p50_ns", "test", "ack"),
                   ("get", "bytes", "p50_ns", "test", "get")],
    "cmdperf": [("eqget", 1, "p50_ns", None, None)],
    "matchperf": [("match", "depth", "p50_ns", None, None)],
    "oversub": [("alltoall", "nodes", "Mmsg_per_s", None, None)]}
PERF = {test: text for test, *_, text in PICKS["portalperf"]}


def joined(values):
    return ",".join(map(str, values))


def picked(who, program, rows):
    """Return rows of who, test, x, value."""
    return [(who, test, row.get(x, x), row[value]) for row in rows for test, x, value, key, text in PICKS[program]
            if not key or row[key] == text]


class Portals:
    """libportals: the programs of bench, and peer_portals; with another build's yod and library if old is
    its folder of programs."""
    tests = ALL
    lacks = ""

    def __init__(self, old=None):
        self.name, self.old = "old" if old else "ours", old
        if not old:
            return
        if not os.access(old / "yod", os.X_OK):
            run.die(run.NOT_THERE, "--old: no yod there; expected the bin folder of a build")
        there = [folder for folder in (old, old / "../lib", old / "..") if (folder / "libportals.so.0").exists()]
        if not there:
            run.die(run.NOT_THERE, f"--old: no libportals.so.0 in or beside {old}; expected a build's bin folder")
        self.library = there[0].resolve()  # beside the programs, or one folder up

    def missing(self):
        return ""

    def environment(self):
        return {"LD_LIBRARY_PATH": str(self.library)} if self.old else {}

    def build(self, turn):
        """See that programs take the older library: those with an RPATH would run with the new one."""
        if self.old:
            said = output([self.old / "yod", "-sz", 1, turn.bin / "cmdperf", "--quick", "--calls", "EQGet, empty"],
                          {**self.environment(), "LD_DEBUG": "libs"})
            if f"calling init: {self.library}/libportals.so.0" not in said[1]:
                run.die(1, f"--old: cmdperf does not run with the library in {self.library}; see its RUNPATH")

    def bench(self, turn, name, nodes, program, *words):
        """Return the rows of a program of bench."""
        folder = self.old or turn.bin
        command = [*words, *["--quick"] * turn.quick]
        found = job(folder, nodes, turn.bin / program, command, self.environment(), cpus=turn.here(), limit=LIMIT)
        return picked(name, program, found["results"])

    def perf(self, turn, name, tests, sizes, *words):
        if not tests or not sizes:
            return []
        return self.bench(turn, name, 2, "portalperf", "--test", joined(PERF[t] for t in tests),
                          "--sizes", joined(sizes), *words)

    def rows(self, turn):
        yield from self.perf(turn, self.name, turn.want("latency", "stream", "rate"), turn.x["latency"])
        yield from self.perf(turn, self.name, turn.want("ack", "get"), [8])
        if turn.want("eqget"):
            yield from self.bench(turn, self.name, 1, "cmdperf", "--calls", "PtlEQGet, empty")
        yield from peer_lines([(self.old or turn.bin) / "yod", "-sz", 2, turn.bin / "peer_portals", self.name,
                               turn.scale()], turn.want("am", "queues", "threads"), env=self.environment(),
                              cpus=turn.here(), limit=LIMIT)
        yield from self.perf(turn, self.name + "_heap", turn.want("stream"), turn.x["stream"], "--heap")
        yield from self.perf(turn, self.name + "_heap", turn.want("latency"),
                             [size for size in turn.x["latency"] if size >= BY_SHARED_HEAP], "--heap")
        for depths in turn.want("match").values():
            yield from self.bench(turn, self.name, 2, "matchperf", "--depth", joined(depths), "--list", "exact",
                                  "--hit", "end")
        for nodes in turn.want("alltoall").get("alltoall", []):
            yield from self.bench(turn, self.name, nodes, "oversub")


# ---- other libraries ----

class PeerMpi(Mpi):
    """Open MPI and MPICH: compare/mpi, built with the mpicc of each."""
    tests = ALL
    lacks = ""

    def build(self, turn):
        self.build_peer(turn.work)

    def one(self, turn, nodes, yields, tests):
        command, env = self.peer(nodes, yields, self.label(nodes), turn.scale())
        return peer_lines(command, tests, env=env, cpus=turn.here(), limit=LIMIT)

    def rows(self, turn):
        # A test has no CPU for itself.
        yield from self.one(turn, 2, turn.quick, turn.want(*(t for t in ALL if t not in ("alltoall", "threads"))))
        yield from self.one(turn, 2, True, turn.want("threads"))
        for nodes in turn.want("alltoall").get("alltoall", []):
            yield from self.one(turn, nodes, True, {"alltoall": [nodes]})


class Ucx:
    """UCX over its shared memory: ucx_perftest, and compare/ucx for the patterns that it has not."""
    API = ["ack", "get", "am", "eqget"]
    # test of ucx_perftest, column, factor: median us (half a round trip), MiB/s, messages/s
    PERF = {"latency": ("tag_lat", 1, 1000), "stream": ("tag_bw", 5, 1.048576), "rate": ("tag_bw", 7, 1e-6)}

    def __init__(self, name, transport):
        self.name, self.env = name, {"UCX_TLS": transport}
        self.api = run.compiles("cc", "ucp/api/ucp.h", "return 0;", "-lucp", "-lucs")
        self.tests = [*self.PERF, *(self.API if self.api else [])]
        self.lacks = "" if self.api else (f"{joined(self.API)} of ucx and ucx-sysv: no headers of UCX, or no "
                                          "compiler; Debian: apt-get install libucx-dev gcc")

    def missing(self):
        return "" if have("ucx_perftest") else \
            f"{self.name}: it is not there, or incomplete; Debian: apt-get install ucx-utils libucx-dev"

    def build(self, turn):
        self.program = turn.work / "peer_ucx"
        if self.api and not self.program.exists():
            run.build(self.program, "cc", (run.BENCH / "compare/ucx").glob("*.c"), "-lucp", "-lucs")

    def perftest(self, turn, test, size):
        name, column, factor = self.PERF[test]
        n = turn.iterations(size) * (1 if name == "tag_lat" else 4)
        with socket.create_server(("", 0)) as free:  # which the kernel has given to nobody else
            port = free.getsockname()[1]
        base = ["ucx_perftest", "-p", port]
        said = turn.served(base, [*base, "-f", "-v", "-t", name, "-s", size, "-n", n, "-w", n // 10 + 1, "-O", 64,
                                  "localhost"], self.env)
        lines = [line.split(",") for line in said.splitlines()[1:] if line.count(",") > 4]
        return self.name, test, size, float(lines[-1][column]) * factor

    def rows(self, turn):
        for test, sizes in turn.want(*self.PERF).items():
            for size in sizes:
                yield self.perftest(turn, test, size)
        if self.api:
            yield from peer_lines([self.program, self.name, turn.scale()], turn.want(*self.API), env=self.env,
                                  cpus=turn.here(), limit=LIMIT)


class Libfabric:
    """libfabric: fi_pingpong over its provider of shared memory."""
    name, tests, lacks = "libfabric", ["latency"], ""

    def missing(self):
        there = have("fi_pingpong") and subprocess.run(["fi_info", "-p", "shm"], capture_output=True,
                                                       check=False).returncode == 0
        return "" if there else "libfabric: it is not there, or incomplete; Debian: apt-get install libfabric-bin"

    def build(self, turn):
        pass

    def rows(self, turn):
        for size in turn.want("latency").get("latency", []):
            yield self.name, "latency", size, turn.pingpong("shm", size)


class Provider:
    """libfabric's provider portals, by the same programs beside that of shared memory, and beside Open MPI's
    own transport (vader)."""
    name, tests, lacks = "provider", PROVIDED, ""
    TRANSPORTS = {"mpi_portals": {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi", "OMPI_MCA_btl": "self,ofi",
                                  "OMPI_MCA_mtl_ofi_provider_include": "portals",
                                  "OMPI_MCA_btl_ofi_provider_include": "portals"},
                  "mpi_vader": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"}}

    def __init__(self):
        self.mpi = Mpi("openmpi")

    @staticmethod
    def environment(turn):
        return {"FI_PROVIDER_PATH": str(turn.bin.parent / "libfabric")}

    def missing(self):
        missing = self.mpi.missing()
        return "provider: " + missing if missing else Libfabric().missing()

    def build(self, turn):
        library = pathlib.Path(self.environment(turn)["FI_PROVIDER_PATH"], "libportals-fi.so")
        if not library.exists():
            run.die(run.NOT_THERE, f"provider: {library} is not there; expected a build beside libfabric's headers "
                                   "(Debian: libfabric-dev)")
        self.mpi.build_peer(turn.work)

    def rows(self, turn):
        wanted = turn.want(*PROVIDED)
        for who, more in self.TRANSPORTS.items():
            command, env = self.mpi.peer(2, turn.quick, who, turn.scale())
            yield from peer_lines(command, wanted, cpus=turn.here(), limit=LIMIT,
                                  env={**self.environment(turn), **env, "OMPI_MCA_osc": "rdma", **more})
        for size in turn.want("latency").get("latency", []):
            for provider in ("portals", "shm"):
                ns = turn.pingpong(provider, size, self.environment(turn), "-m", "tagged")
                yield "fi_" + provider, "latency", size, ns


class Netpipe:
    """NetPIPE over Open MPI, whose Mbps are of 2^20 bits."""
    name, tests, lacks = "netpipe", ["latency", "stream"], ""

    def missing(self):
        return "" if have("NPopenmpi", "mpirun.openmpi") else \
            "netpipe: it is not there, or incomplete; Debian: apt-get install netpipe-openmpi"

    def build(self, turn):
        self.out = turn.work / "np"

    def rows(self, turn):
        for test, sizes in turn.want("latency", "stream").items():
            output(["mpirun.openmpi", *Mpi("openmpi").rooted, "--bind-to", "core", "-np", 2, "NPopenmpi", "-p", 0,
                    "-u", sizes[-1], "-n", 20 if turn.quick else 200, "-o", self.out, *["-s"] * (test == "stream")],
                   cpus=turn.here(), limit=LIMIT)
            for line in self.out.read_text().splitlines():
                size, mbits, seconds = line.split()
                if int(size) in sizes:
                    yield (self.name, test, int(size),
                           float(seconds) * 1e9 if test == "latency" else float(mbits) * 1048576 / 8e6)


class Raw:
    """The machine's limits, and the bare design: no library."""
    name, tests = "raw", []

    def rows(self, turn):
        wanted = turn.want("latency", "stream", "rate", "ack", "get", "am", "eqget", "alltoall")
        yield from peer_lines([turn.bin / "peer_raw", turn.scale()], wanted, cpus=turn.here(), limit=LIMIT)


PEERS = {"openmpi": lambda: PeerMpi("openmpi"), "mpich": lambda: PeerMpi("mpich"),
         "ucx": lambda: Ucx("ucx", "posix,self"), "ucx-sysv": lambda: Ucx("ucx-sysv", "sysv,self"),
         "libfabric": Libfabric, "provider": Provider, "netpipe": Netpipe}

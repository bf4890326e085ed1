# SPDX-License-Identifier: BSD-3-Clause
"""steps - the steps of a message in the firmware of its target, node 1, by a trace.  Times are in
microseconds."""
import collections
import json
import pathlib
import sys
import tempfile
from functools import partial

from figures.lab import ACCELERATED
from figures.stats import Measured, median

MATCH, EVENT, UNLINK, DELIVER = SLICES = "match hit", "event PUT_END", "event UNLINK", "deliver put"
LEAVE = "end of the lease"


def ping_pong(lab, *options):
    """Return the ns of an empty message in a ping-pong."""
    text, _ = lab.run("peer_portals", [*lab.two_nodes(*options), lab.bin / "peer_portals", "ours", lab.scale(),
                                       "posted=0"], ACCELERATED)
    return float(text.split()[-1])


def traced(lab, file=None):
    """Trace a ping-pong, in this file if it is named.  Return the events."""
    with tempfile.TemporaryDirectory() as work:
        trace = file or pathlib.Path(work, "trace")
        ping_pong(lab, "--trace", trace)
        text, _ = lab.run("tracedump", [lab.bin / "tracedump", "--json", trace], {})
    return sorted((e for e in json.loads(text)["traceEvents"] if e["ph"] == "X"), key=lambda e: e["ts"])


def end(event):
    return event["ts"] + event["dur"]


def message(event):
    return event["args"]["message"]


def firmware(events):
    """Return the medians of the slices of node 1's firmware that treat a message.  A slice ends
    at the record that names it."""
    found = collections.defaultdict(list)
    for e in events:
        if e["pid"] == 1 and e["tid"] == 0 and message(e).startswith("0-1:"):
            found[e["name"]].append(e["dur"])
    for name in SLICES:
        if name not in found:
            sys.exit(f"papers: the trace has no '{name}' in node 1; expected some; see tracedump --json")
    return {name: median(found[name]) for name in SLICES}


Price = collections.namedtuple("Price", "bare traced each records")


def price(lab):
    """Measure the cost of a record by ping-pongs with and without a trace, in turns.  Return the ns of a message
    without and with it, those of each record, and the records of a message, of both nodes and their leases."""
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work, "trace")
        ways = {"bare": [], "traced": ["--trace", file]}
        bare, with_trace = lab.values({way: partial(ping_pong, lab, *options)
                                       for way, options in ways.items()}).values()
        text, _ = lab.run("tracedump", [lab.bin / "tracedump", file], {})
    records = len(text.splitlines()) / text.count("deliver put")
    return Price(bare, with_trace, (with_trace - bare) / records, records)


def handing_back(events):
    """Return the median time from a message's delivery to the end of the lease under which node
    1's firmware ran; None if that lease does not end between the messages."""
    mine = [e for e in events if e["pid"] == 1 and e["tid"] == 0]
    ends = iter([end(e) for e in mine if e["cat"] in ("lease", "given") and e["dur"]])
    times, lease = [], next(ends, None)
    delivered = sorted(end(e) for e in mine if e["name"] == "deliver put")
    for at, following in zip(delivered, delivered[1:]):
        while lease is not None and lease < at:
            lease = next(ends, None)
        if lease is not None and lease < following:
            times.append(lease - at)
    return median(times)


def rounds(lab):
    """Trace a ping-pong in each round.  Return {step: Measured}; a step that a round lacks is None."""
    def all_steps():
        events = traced(lab)
        return {**firmware(events), LEAVE: handing_back(events)}
    seen = lab.each_round(all_steps)
    return {step: None if None in values else Measured(values) for step, values in seen.items()}

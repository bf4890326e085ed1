# SPDX-License-Identifier: BSD-3-Clause
"""stranger.py seconds recorded from address port...: attack ranks as one who is not of the job.

Run on a host, from one of its addresses.  For so many seconds each port gets half greetings,
garbage, greetings with proofs by another secret and records behind them, what a process of another
job has said (the file recorded), whole and behind a new greeting, all that was said before once
more, connections that say nothing, and floods of them; and all ports around it are tried.  Fail if
a port says more than one greeting.  Print how many connections there were.
"""
import errno
import hashlib
import os
import random
import resource
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../support")
from patience import LIMIT  # noqa: E402

MAGIC, HELLO, ANSWER, PROOF, RANKS, PROOF_OF_CALLER = 0x33504403, 1, 2, 3, 6, 2
GREETING = struct.Struct("<IIII16s32s")
LABEL = struct.Struct("<QII16s16s")  # what a caller's proof is a keyed hash of
RECORDS = [os.urandom(16) + struct.pack("<II", n, what) for what in range(7) for n in (0, 8, 24, 64, 232, 0xffffffff)]
FLOOD, SHORT_S, SHORT_FLOOD = 2000, 10, 200  # connections at a time; those of a short attack

calls = answers = 0
said = []  # what strangers have said


def dial(source, to):
    """Return a connection, or None if the rank turns it away at once, or no port is free."""
    global calls
    calls += 1
    s = socket.socket()
    s.settimeout(LIMIT)
    try:
        s.bind((source, 0))
        s.connect(to)
    except OSError as why:
        s.close()
        if not isinstance(why, (ConnectionError, TimeoutError)) and why.errno != errno.EADDRINUSE:
            raise
        return None
    return s


def say(s, what):
    said.append(what)
    del said[:-100]
    try:
        s.sendall(what)
    except ConnectionError:
        pass


def rest(s):
    """Return what comes until the end of the connection."""
    got = b""
    try:
        while chunk := s.recv(4096):
            got += chunk
    except ConnectionError:
        pass
    s.close()
    return got


def garbage(s):
    say(s, os.urandom(random.choice((1, GREETING.size - 1, GREETING.size, 4096))).ljust(GREETING.size, b"x"))
    assert rest(s) == b"", "an answer to garbage"


def half(s):
    """Half a greeting, and then nothing until the rank ends the connection."""
    say(s, struct.pack("<III", MAGIC, HELLO, 5))
    assert rest(s) == b"", "an answer to half a greeting"


def prove(called, nonce, answer):
    """Return a proof for this call, by the secret of another job."""
    label = LABEL.pack(PROOF_OF_CALLER, 5, called, nonce, answer[16:32])
    proof = hashlib.blake2b(label, key=os.urandom(32), digest_size=32).digest()
    return GREETING.pack(MAGIC, PROOF, 5, called, bytes(16), proof)


def greet(s, called, recorded=None):
    """Greet rightly, prove wrongly, and go on as if that had been right; or as another job has done."""
    global answers
    nonce = os.urandom(16)
    say(s, GREETING.pack(MAGIC, HELLO, 5, called, nonce, bytes(32)))
    try:
        answer = s.recv(GREETING.size, socket.MSG_WAITALL)
    except ConnectionError:
        answer = b""
    assert len(answer) in (0, GREETING.size), "half an answer"
    answers += len(answer) > 0
    behind = prove(called, nonce, answer or bytes(GREETING.size)) + random.choice(RECORDS) + os.urandom(240)
    say(s, recorded or behind)
    assert rest(s) == b"", "a packet for a stranger"


def replay(s, what):
    for part in what:
        s.sendall(part)
    assert len(rest(s)) in (0, GREETING.size), "more than a greeting for a replay"


def attack(how, source, to):
    s = dial(source, to)
    if not s:
        return
    try:
        how(s)
    except (BrokenPipeError, ConnectionResetError):
        s.close()


def flood(source, to, number, idle):
    """Many connections at a time that say nothing, for some seconds or for none."""
    most = min(number, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 50)
    many = [s for s in (dial(source, to) for _ in range(most)) if s]
    if idle:
        time.sleep(idle)  # pause: of a stranger
    for s in many:
        s.close()


def scan(source, host, middle):
    """Look which ports of a host are open, as scanners do."""
    global calls
    for port in range(max(1, middle - 100), min(65536, middle + 100)):
        with socket.socket() as s:
            s.settimeout(LIMIT)
            s.bind((source, 0))
            calls += s.connect_ex((host, port)) == 0


def main():
    end = time.monotonic() + float(sys.argv[1])
    source, targets = sys.argv[3], [(sys.argv[4], int(p)) for p in sys.argv[5:]]
    with open(sys.argv[2], "rb") as f:
        recorded = f.read()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * FLOOD, hard) if hard > 0 else 2 * FLOOD, hard))
    number = SHORT_FLOOD if float(sys.argv[1]) < SHORT_S else FLOOD
    turn = 0
    while not turn or time.monotonic() < end:
        for to in targets:
            for called in range(RANKS):
                attack(lambda s: greet(s, called), source, to)
                attack(lambda s: greet(s, called, recorded[GREETING.size:]), source, to)
                attack(garbage, source, to)
                attack(lambda s: replay(s, said[-6:]), source, to)
            attack(lambda s: replay(s, [recorded]), source, to)
            flood(source, to, number, 0)
        if turn % 4 == 0:
            to = targets[turn // 4 % len(targets)]
            attack(half, source, to)
            scan(source, *to)
            flood(source, to, number, 2)
        turn += 1
    print(f"# tried: {calls} connections from {source}, {answers} of them answered")


main()

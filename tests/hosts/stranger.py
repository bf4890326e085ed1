# SPDX-License-Identifier: BSD-3-Clause
"""stranger.py address port[,port...]: connect to beacons as one who is not of the job.

Run on a host of the job.  Each beacon gets garbage, silence, greetings with wrong proofs, and
1,000 connections at a time.  Fail if a beacon says more than one greeting, or opens a channel.
"""
import os
import socket
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../support")
from patience import LIMIT  # noqa: E402

MAGIC, HELLO, ANSWER, PROOF = 0x33504402, 1, 2, 3
GREETING = struct.Struct("<IIII16s16s")


def dial(address, port):
    s = socket.create_connection((address, port), LIMIT)
    s.settimeout(LIMIT)
    return s


def rest(s):
    """Return what comes until the end of the connection."""
    got = b""
    try:
        while chunk := s.recv(4096):
            got += chunk
    except ConnectionError:
        pass
    return got


def say(s, what):
    """Send bytes, perhaps to a beacon that has hung up already."""
    try:
        s.sendall(what)
    except ConnectionError:
        pass


def garbage(address, port):
    s = dial(address, port)
    say(s, os.urandom(4096))
    assert rest(s) == b"", "an answer to garbage"


def wrong_proof(address, port, caller, called):
    """Greet rightly, and prove wrongly; then say BORN as if that had been right."""
    s = dial(address, port)
    s.sendall(GREETING.pack(MAGIC, HELLO, caller, called, os.urandom(16), bytes(16)))
    answer = s.recv(GREETING.size, socket.MSG_WAITALL)
    assert len(answer) == GREETING.size, "no answer to a greeting"
    say(s, GREETING.pack(MAGIC, PROOF, caller, called, bytes(16), os.urandom(16)))
    say(s, os.urandom(240))
    assert rest(s) == b"", "a packet for a stranger"


def crowd(address, port):
    many = [dial(address, port) for _ in range(1000)]
    for s in many:
        s.close()


def main():
    address, ports = sys.argv[1], [int(p) for p in sys.argv[2].split(",")]
    for port in ports:
        garbage(address, port)
        for called in range(6):
            try:
                wrong_proof(address, port, 5, called)
                print(f"port {port}: rank {called} has turned the stranger away")
            except (AssertionError, ConnectionResetError) as e:
                if str(e) != "no answer to a greeting" and not isinstance(e, ConnectionResetError):
                    raise
        crowd(address, port)


main()

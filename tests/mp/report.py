#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""yod says by itself why its job hangs: report.py YOD PTLSTAT HANG BOUNDED

At a timeout, at SIGQUIT, and in a barrier that lasts.  Where a time decides, it grows until
the job has had the time to hang: a loaded machine is slow, not wrong."""
import concurrent.futures
import os
import re
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../support')
from drive import fail, finish, perform  # noqa: E402
from patience import LIMIT, Patience  # noqa: E402

YOD, PTLSTAT, HANG, BOUNDED = sys.argv[1:5]
NO_NODE = r'\nnode 0 waits for an event that no node has sent'


def check_timeout():
    for seconds in (1, 4, 16, 64):
        job = perform(YOD, '-sz', 3, '--timeout', seconds, HANG, 'event')
        if re.search(NO_NODE, job.stderr):
            break
    if job.returncode != 124 or not re.search(
            r'yod: timeout: .*\nnode 0 \(pid \d+\): waits in PtlEQWait on EQ (.*\n)*.*' + NO_NODE,
            job.stderr):
        fail(f'a timeout: {job}')


def check_silence():
    job = perform(YOD, '-sz', 2, '--timeout', 1, '--why-after', 0, HANG, 'event')
    if job.returncode != 124 or '\nnode ' in job.stderr:
        fail(f'--why-after 0: {job}')


def check_bounded():
    """A test that is cut off; without gdb, which takes its time."""
    for seconds in (1, 4, 16, 64):
        job = perform(BOUNDED, seconds, YOD, '-sz', 3, HANG, 'event',
                      env={**os.environ, 'PATH': '/'})
        if re.search(NO_NODE, job.stderr):
            break
    if job.returncode != 124 or not re.search(NO_NODE, job.stderr):
        fail(f'a test that is cut off: {job}')


def start(*words):
    return subprocess.Popen([YOD, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def has_said(job, pattern, said):
    """Read what the job writes to stderr until it has the pattern."""
    patience = Patience()
    while not patience.is_over() and not re.search(pattern, said[0]):
        if select.select([job.stderr], [], [], 0.2)[0]:
            said[0] += os.read(job.stderr.fileno(), 65536).decode()
    return re.search(pattern, said[0])


def check_quit():
    """SIGQUIT for all processes named yod: the report comes first, then the ranks get it."""
    shell = 'ulimit -c 0; trap "echo quit $PTL_MY_RID" QUIT; "$@" & wait; wait'
    job = start('-sz', '3', 'bash', '-c', shell, 'sh', HANG, 'event')
    patience = Patience()
    while not patience.is_over():
        look = perform(PTLSTAT, 'why', job.pid)
        if re.search(NO_NODE, look.stdout):
            break
        time.sleep(0.1)
    with open(f'/proc/{job.pid}/task/{job.pid}/children', encoding='ascii') as f:
        both = [job.pid, int(f.read().split()[0])]
    for pid in reversed(both):
        os.kill(pid, signal.SIGQUIT)
    out, err = job.communicate(timeout=LIMIT)
    if job.returncode != 131 or not re.search(r'yod: signal 3 .*\n(.*\n)*.*' + NO_NODE, err):
        fail(f'SIGQUIT: {job.returncode}: {err}')
    if sorted(out.split()) != sorted('quit 0 quit 1 quit 2'.split()):
        fail(f'the ranks do not get SIGQUIT: {out}')


def report_barrier(seconds):
    """Return what yod says when a barrier lasts for this time, and whether it is right."""
    said = ['']
    job = start('-sz', '3', '--why-after', str(seconds), HANG, 'barrier')
    has_said(job, rf'yod: \d of 3 ranks wait in PtlXBarrier, the first for {seconds} s.*\n'
                  r'(.*\n)*.*\nnode \d .*has not come to the barrier; ', said)
    job.send_signal(signal.SIGTERM)
    job.wait(timeout=LIMIT)
    said[0] += job.stderr.read() or ''
    return said[0], re.search(
        r'yod: 2 of 3 ranks wait in PtlXBarrier, .*\n(.*\n)*.*\nnode 1 computes outside of '
        r'Portals, and has not come to the barrier', said[0])


def check_barrier():
    for seconds in (0.5, 4, 16, 64):
        said, right = report_barrier(seconds)
        if right:
            break
    if not right:
        fail(f'a barrier: {said}')
    if len(re.findall(r'yod: \d of 3 ranks wait', said)) != 1:
        fail(f'a barrier is not reported once: {said}')


def check_brief():
    job = start('-sz', '3', '--why-after', '0', HANG, 'event')
    patience = Patience()
    while not patience.is_over():
        look = perform(PTLSTAT, 'why', '--brief', job.pid)
        if 'no node has sent' in look.stdout:
            break
        time.sleep(0.1)
    if len(look.stdout.splitlines()) != 1 or '(pid' in look.stdout:
        fail(f'--brief: {look}')
    job.send_signal(signal.SIGTERM)
    job.wait(timeout=LIMIT)


os.environ['PTL3_HUGEPAGES'] = 'off'
with concurrent.futures.ThreadPoolExecutor(6) as pool:  # most of them only wait
    for done in [pool.submit(check) for check in (
            check_timeout, check_silence, check_bounded, check_quit, check_barrier, check_brief)]:
        done.result()
finish()

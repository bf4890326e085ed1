#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ptlstat and processes that yod did not start: look.py PTLSTAT HANG

Ranks have the variables that another launcher leaves, others are started by hand.  What is
said of them is asked for until it is right: a loaded machine is slow, not wrong."""
import fcntl
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../support')
from drive import fail, finish, perform, until  # noqa: E402
from patience import LIMIT  # noqa: E402

PTLSTAT, HANG = sys.argv[1:3]
NAME = f'look{os.getpid()}'
USERS = f'/dev/shm/ptl3-{os.geteuid()}'
F_ADD_SEALS, SHRINK, GROW, FUTURE_WRITE = 1033, 2, 4, 16
started = []


def ptlstat(*words, expected=(0,), **how):
    run = perform(PTLSTAT, *words, **how)
    if run.returncode not in expected:
        fail(f'ptlstat {words}: status {run.returncode}: {run.stdout}{run.stderr}')
    return run.stdout + run.stderr


def start(env, *words):
    process = subprocess.Popen([HANG, *words], env={**os.environ, **env},
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started.append(process)
    return process


def ranks(job, size, scene, absent=()):
    return {r: start({'PMI_RANK': str(r), 'PMI_SIZE': str(size), 'PMI_JOBID': job}, scene)
            for r in range(size) if r not in absent}


def end(processes):
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


def says(words, *patterns):
    said = {}

    def explains():
        said['it'] = ptlstat(*words, expected=(0, 1))
        return all(re.search(p, said['it']) for p in patterns)
    until(f'ptlstat {words} says {patterns}', explains)
    if not explains():
        print(said['it'])


def check_ranks():
    job = ranks(f'{NAME}.1', 3, 'event')
    domain = ['--domain', f'pmi-{NAME}.1']
    said = (r'node 0 waits for an event that no node has sent, and has not come to the barrier; '
            r'2 nodes wait for it: 1-2', r'each of nodes 1-2: waits in PtlXBarrier since')
    says(['why', *domain], *said)
    says(['why', job[1].pid], *said)
    says([*domain, '-i', '0.1'], rf'domain pmi-{NAME}.1: 3 nodes, 3 joined', r'barrier \d')
    look = json.loads(ptlstat('--json', '-i', '0.1', *domain))
    if look['domain'] != domain[1] or [n['pid'] for n in look['nodes']] != [
            job[r].pid for r in range(3)] or look['nodes'][1]['barrier'] is None:
        fail(f'the ranks as JSON: {look}')
    job[0].send_signal(signal.SIGSTOP)
    says(['why', *domain], r'node 0 is stopped .*; 2 nodes wait for it: 1-2')
    listed = json.loads(ptlstat('--json'))['domains']
    if [3] != [d['members'] for d in listed
               if (d['name'], d['uid']) == (domain[1], os.geteuid())]:
        fail(f'the domain is not listed: {listed}')
    end(job.values())
    if 'has no members of this user' not in ptlstat('why', *domain, expected=(1,)):
        fail('a domain that is over')


def check_absent():
    job = ranks(f'{NAME}.2', 3, 'late', absent=[1])
    says(['why', '--domain', f'pmi-{NAME}.2'],
         r'node 1 is not there: no interface yet, or ended, and has not come to the barrier; '
         r'1 node waits for it: 0|node 1 is not there.*\n')
    end(job.values())


def check_family():
    """The domain of a family has more slots than the job has ranks."""
    job = [start({'OMPI_COMM_WORLD_RANK': str(r), 'OMPI_COMM_WORLD_SIZE': '3',
                  'PMIX_NAMESPACE': f'{NAME}.kin@1'}, 'late') for r in (0, 2)]
    domain = f'ompi-{NAME}.kin'
    says(['why', '--domain', domain], r'node 1 is not there: no interface yet, or ended')
    says(['--domain', domain, '-i', '0.1'], rf'domain {domain}: 3 nodes, 2 joined')
    end(job)


def by_hand(domain, count):
    """Processes that wait for an event, each for itself."""
    some = [start({'PTL3_DOMAIN': domain}, 'event') for _ in range(count)]
    if domain != 'none':
        until(f'members of {domain}', lambda: len(re.findall(
            'PtlEQWait', ptlstat('--json', 'why', '--domain', domain, expected=(0, 1)))) >= count)
    return some


def check_by_hand():
    some = by_hand(NAME, 2)
    said = ptlstat('why', some[1].pid)
    if 'no node has sent' in said or not re.match(r'each of nodes 0-1: waits', said):
        fail(f'others may come into a domain, and send: {said}')
    if 'PTL3_DOMAIN' not in ptlstat('conf', '--domain', NAME):
        fail('the settings of a member')
    end(some)
    alone = by_hand('none', 1)
    says(['why', alone[0].pid], r'node 0 \(pid \d+\): waits in PtlEQWait')
    end(alone)
    if 'nor of a process with an interface' not in ptlstat('why', os.getpid(), expected=(1,)):
        fail('a process without an interface')


def check_stranger(some):
    if os.geteuid():
        return
    who = {'user': 65534, 'group': 65534, 'extra_groups': []}
    for words in (['why', some[0].pid], ['why', '--domain', NAME]):
        if 'PtlEQWait' in ptlstat(*words, expected=(1,), **who):
            fail(f'another user sees {words}')
    if NAME in ptlstat(**who):
        fail('another user sees the domain')


# ---- members that lie, or go ----

def published_of(pid):
    for fd in os.listdir(f'/proc/{pid}/fd'):
        if os.readlink(f'/proc/{pid}/fd/{fd}').startswith('/memfd:p3-published'):
            return f'/proc/{pid}/fd/{fd}'
    return None


def lie(slot, image, seals, length):
    """A process that holds a slot and has such a segment; it ends when its input does."""
    ready, pid = os.pipe(), None
    go = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(go[1])
        locks = os.open(f'{USERS}/{NAME}/locks', os.O_RDWR)
        fcntl.lockf(locks, fcntl.LOCK_EX, 1, slot)
        fd = os.memfd_create('p3-published', os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, length)
        os.pwrite(fd, image[:length], 0)
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
        os.write(ready[1], b'.')
        os.read(go[0], 1)
        os._exit(0)
    os.close(go[0])
    os.read(ready[0], 1)
    for fd in ready:
        os.close(fd)
    return pid, go[1]


def look_at_lie(slot, image, seals=SHRINK | GROW | FUTURE_WRITE, length=None):
    pid, go = lie(slot, image, seals, len(image) if length is None else length)
    for words in (['why'], ['-i', '0.01', '-c', '1'], ['--json', '-i', '0.01'], ['conf']):
        ptlstat(*words, '--domain', NAME)
    os.close(go)
    os.waitpid(pid, 0)


def check_liars(some):
    path = published_of(some[0].pid)
    with open(path, 'rb') as f:
        image = f.read(1 << 20)
    noise = random.Random(17)
    look_at_lie(5, image[:4096])
    look_at_lie(5, image, seals=0)
    look_at_lie(5, image, length=0)
    look_at_lie(5, image[:100], length=1 << 20)
    look_at_lie(5, image, length=1 << 40)
    for nnodes in (0, 1, 1024, 1025, 1 << 31, (1 << 32) - 1):
        look_at_lie(5, image[:32] + struct.pack('<II', nnodes, 5) + image[40:])
    for _ in range(8):
        lies = bytearray(image)
        for _ in range(20000):
            lies[noise.randrange(64, 1 << 18)] = noise.randrange(256)
        look_at_lie(5, bytes(lies))


def check_churn():
    """Members come and go while they are looked at."""
    with tempfile.TemporaryFile() as out:
        looker = subprocess.Popen([PTLSTAT, '-i', '0.01', '-c', '1000000', '--domain', NAME],
                                  stdout=out, stderr=subprocess.PIPE, text=True)
        until('a looker begins', lambda: os.fstat(out.fileno()).st_size)
    for _ in range(5):
        more = [start({'PTL3_DOMAIN': NAME}, 'event') for _ in range(3)]
        ptlstat('why', '--domain', NAME)
        end(more)
    if looker.poll() is not None:
        fail(f'a looker ends while there are members: {looker.stderr.read()}')
    end([p for p in started if p.poll() is None])
    try:
        _, err = looker.communicate(timeout=LIMIT)
        if looker.returncode != 1 or 'no members any more' not in err:
            fail(f'a looker at the end: {looker.returncode}, {err}')
    except subprocess.TimeoutExpired:
        looker.kill()
        fail('a looker does not end with the domain')


def main():
    for name in list(os.environ):
        if name.startswith(('PTL3_', 'OMPI_', 'PMI', 'SLURM_')):
            del os.environ[name]
    os.environ['PTL3_HUGEPAGES'] = 'off'
    check_ranks()
    check_absent()
    check_family()
    check_by_hand()
    some = by_hand(NAME, 2)
    check_stranger(some)
    check_liars(some)
    check_churn()


try:
    main()
finally:
    end([p for p in started if p.poll() is None])
finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ptlstat against jobs that hang, die, talk and are stopped: ptlstat.py YOD PTLSTAT HANG

Jobs are started all at once, since most of them only wait.  What is said of them is asked
for until it is right: a loaded machine is slow, not wrong."""
import json
import os
import pty
import pwd
import re
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../support')
from drive import fail, finish, perform, until  # noqa: E402
from patience import LIMIT, Patience  # noqa: E402

YOD, PTLSTAT, HANG = sys.argv[1:4]
started = []


def start(nodes, scene, *options, env=None):
    command = [YOD, '-sz', str(nodes), '--timeout', str(LIMIT), *options, HANG, scene]
    job = subprocess.Popen(command, env={**os.environ, **(env or {})},
                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started.append(job)
    return job


def ptlstat(*words, expected=0):
    run = perform(PTLSTAT, *words)
    if run.returncode != expected:
        fail(f'ptlstat {words}: status {run.returncode}: {run.stdout}{run.stderr}')
    return run.stdout + run.stderr


def picture(job, interval=0.1, count=1):
    out = ptlstat('--json', '-i', interval, '-c', count, job)
    return [json.loads(line) for line in out.splitlines()]


def is_there(job):
    return any(j['job'] == job.pid and j['answers']
               for j in json.loads(ptlstat('--json'))['jobs'])


def end(*jobs):
    for job in jobs:
        if job.poll() is None:
            job.send_signal(signal.SIGTERM)
    for job in jobs:
        job.wait(timeout=LIMIT)


# ---- why ----

STOPPED = r'stopped \(SIGSTOP; kill -CONT \d+ lets it go on\)'
SCENES = {
    ('barrier', 3): [r'node 1 computes outside of Portals, and has not come to the '
                     r'barrier; 2 nodes wait for it: 0,2'],
    ('stopped', 4): [rf'node 2 is {STOPPED}, and has not come to the barrier; '
                     r'3 nodes wait for it: 0-1,3',
                     r'each of nodes 0-1,3: waits in PtlXBarrier since [0-9.]+ s or more; '
                     r'has not come: 2'],
    ('event', 3): [r'node 0 waits for an event that no node has sent, and has not come to '
                   r'the barrier; 2 nodes wait for it: 1-2',
                   r'node 0 .*waits in PtlEQWait on EQ \d+ with 0 events unread'],
    ('paused', 2): [r'node 0 waits for an event: nothing is known to be lost, and node 1, which is '
                    rf'stopped, may have something to send\nnode 1 is {STOPPED}'],
    ('drop', 2): [r'node 1 has dropped 1 message of node 0, the last one a put of 64 bytes '
                  r'to portal index 4, match bits 0x7: the portal index has no match entry; '
                  r'node 0, which waits for an event, gets no answer'],
    ('denied', 2): [r'node 1 has dropped 1 message of node 0, .*: access control entry 3 is '
                    r'not set; .*; node 0'],
    ('noack', 2): [r'node 1 has given no ACK to 1 put of node 0, the last one a put of 64 '
                   r'bytes to portal index 4, .*PTL_MD_ACK_DISABLE.*; node 0'],
    ('lateack', 2): [r'1 request of node 0 got an answer that was dropped, the last one a put '
                     r'of 8 bytes .* for node 1: the ACK came after its memory descriptor'],
    ('own', 2): [r'node 0 has dropped 1 message of node 1, the last one a put of 8 bytes .*: '
                 r'no match entry accepts it: the nearest of 1 has match bits 0x7, ignore bits '
                 r'0x0; the request differs in bits 0xf; node 0'],
    ('wrongpid', 2): [r'node 0 waits for an event that will not come, and has not come to the '
                      r'barrier; 1 node waits for it: 1\n'
                      r'1 request of node 0 came to nothing, the last one a put of 64 bytes .* for '
                      r'node 1: the target has no interface with that pid'],
    ('both', 5): [r'each of nodes 1-4: waits in PtlEQWait on EQ 0 .*\n\n'
                  # the last case is one node's, and all others have the same line
                  r'(?=(.*\n)?node 0 has dropped 1 message of node [1-4], the last one a put of 64 '
                  r'bytes .*: the portal index has no match entry; node [1-4], which waits for an '
                  r'event, gets no answer; node 0, which waits for an event, gets none of it\n)'
                  r'(?=(.*\n)?node 0 has dropped 1 message of each of nodes [-1-4,]+: no_match_entry; '
                  r'each of nodes [-1-4,]+, which waits .*, gets no answer; node 0, which .*\n)'
                  r'(.*\n){2}$'],
    ('cut', 2): [r'node 1 .*; has truncated 2'],
    ('lost', 2): [r'EQ \d+ of node 0 has lost [1-9] events?: it holds 2, which is too few'],
    ('gone', 3): [r'[1-9]\d* requests? of node 0 came to nothing, the last one a put of 64 bytes .* for '
                  r'node 1: the target has ended'],
    ('parted', 3): [r'node 2 has left \(PtlFini.*, and has not come to the barrier; '
                    r'2 nodes wait for it: 0-1'],
    ('queued', 2): [rf'node 1 is {STOPPED}; 1 node waits for it: 0; [1-9]\d* messages? '
                    r'lie in its lanes, [1-9]\d* more are queued',
                    r'node 0 .*for node 1: [1-9]\d* in its lane'],
    ('kept', 2): [r'node 1 sleeps outside of Portals, and holds messages back at portal index 4 of '
                  r'its pid \d+ \(PtlXPTHold\), where no match entry accepts the first one of node '
                  r'0; 1 node waits for it: 0',
                  r'node 0 .*for node 1: 1 in its lane.*, the first one waits for a match entry'],
    ('late', 3): [r'node 2 has not called PtlInit, and has not come to the barrier; '
                  r'2 nodes wait for it: 0-1'],
    ('absent', 2): [r'node 0 .*for node 1: 0 in its lane, 1 queued',
                    r'node 1 .*not joined, has called PtlInit'],
    ('killed', 3): [r'node 0 waits for an event that no node has sent',
                    r'node 1 is dead \(killed by signal 9\)'],
    ('left', 3): [r'node 0 waits for an event that no node has sent',
                  r'node 1 .*left.*\n.*node 2 .*exited with status 0'],
    ('idle', 2): [r'no node waits for long; 2 of 2 nodes are alive'],
    ('full', 2): [r'node 1 holds all receive buffers of endpoint 77 \(4\) since .* s: its '
                  r'program has taken the events, and has yet to return them',
                  r'node 1 .*; 1 CCI endpoint, 1 connection, refused [1-9]\d* for want of',
                  r'node 0 .*; 1 CCI endpoint, 1 connection, was refused [1-9]'],
    ('unasked', 2): [r'node 1: 1 connect request not answered at endpoint 77 since .* s'],
}


def start_scenes():
    return {scene: start(scene[1], scene[0], '--keep-going') for scene in SCENES}


def check_why(jobs):
    for scene, patterns in SCENES.items():
        said = {}

        def explains():
            said['it'] = ptlstat('why', jobs[scene].pid)
            return all(re.search(p, said['it']) for p in patterns)
        until(f'why {scene}', explains) or print(said['it'])
        if scene == ('barrier', 3):
            end(jobs[scene])  # whose node takes a CPU
    why = json.loads(ptlstat('--json', 'why', jobs[('stopped', 4)].pid))
    if len(why['nodes']) != 4 or not re.search('node 2 is stopped', why['why'][0]):
        fail(f'why as JSON: {why}')


# ---- pictures ----

NODE = {'rank': int, 'nid': int, 'pid': int, 'state': str, 'stopped': bool,
        'barrier': (float, type(None)), 'unseen': (str, type(None))}
SEEN = {'age': float, 'lease': str, 'counters': dict, 'rates': dict, 'gauges': dict,
        'settings': dict, 'waits': list, 'queues': list, 'drops': list, 'peers': list}
WAIT = {'for': str, 'tid': int, 'seconds': float, 'forever': bool, 'queues': list}
QUEUE = {'number': int, 'size': int, 'unread': int, 'lost': int}
DROP = {'reason': str, 'count': int, 'text': str, 'request': (str, type(None)),
        'rank': (int, type(None)), 'nid': int, 'pid': int}
PEER = {'rank': int, 'queued': int, 'unanswered': int, 'unread': int, 'reading': int,
        'cold': bool, 'kept': bool, 'seconds': float}


def has(thing, schema, what):
    for key, kind in schema.items():
        if key not in thing or not isinstance(thing[key], kind):
            fail(f'{what}: {key} is {thing.get(key)!r}')


def check_schema(job):
    has(job, {'job': int, 'yod': int, 'size': int, 'interval': float, 'nodes': list},
        'job')
    if [n['rank'] for n in job['nodes']] != list(range(job['size'])):
        fail('not all ranks are there')
    for node in job['nodes']:
        has(node, NODE, 'node')
        if node['unseen'] is not None:
            continue
        has(node, SEEN, 'node')
        for name, schema in (('waits', WAIT), ('queues', QUEUE), ('drops', DROP),
                             ('peers', PEER)):
            for thing in node[name]:
                has(thing, schema, name)
        for name in ('counters', 'gauges'):
            has(node[name], {k: int for k in node[name]}, name)


def check_talk(job):
    """16 nodes that send each other as many messages as they receive."""
    seconds = 0.3

    def rates():
        nonlocal seconds
        first, last = picture(job.pid, seconds, 2)
        check_schema(last)
        sent = received = 0
        for a, b in zip(first['nodes'], last['nodes']):
            new = b['counters']['sent'] - a['counters']['sent']
            if abs(b['rates']['sent'] * last['interval'] - new) > 0.5:
                fail(f'{new} messages in {last["interval"]} s: {b["rates"]}')
            sent, received = sent + new, received + b['rates']['received'] * last['interval']
        grown = all(b['counters']['sent'] > a['counters']['sent'] and
                    b['counters']['heartbeat'] > a['counters']['heartbeat']
                    for a, b in zip(first['nodes'], last['nodes']))
        seconds *= 1.5  # until each node has had a CPU meanwhile
        return grown and sent / 2 < received < 2 * sent
    until('rates of a job that talks', rates)
    nodes = picture(job.pid)[0]['nodes']
    for n in nodes:
        g = n['gauges']
        if (g['match_entries'], g['memory_descriptors'], g['event_queues']) != (1, 2, 1):
            fail(f'objects of node {n["rank"]}: {g}')
        if g['peers_alive'] != 16 or n['settings']['cma'] or n['settings']['membarrier']:
            fail(f'node {n["rank"]}: {g} {n["settings"]}')
        if g['slice_bytes'] != 0:
            fail(f'node {n["rank"]} has read without being allowed to: {g}')
    by_node = picture(nodes[3]['pid'])[0]
    if by_node['job'] != job.pid:
        fail('a node\'s pid names the job, too')
    conf = ptlstat('conf', job.pid)
    for row in (r'0 +PTL3_MOVER +window +window\n', r'0 +PTL3_MEMBARRIER +off +off\n', 'as node 0'):
        if not re.search(row, conf):
            fail(f'conf: no {row} in {conf}')
    many = [subprocess.Popen([PTLSTAT, '-i', '0.1', '-c', '3', str(job.pid)],
                             stdout=subprocess.PIPE, text=True) for _ in range(12)]
    for one in many:
        out, _ = one.communicate(timeout=LIMIT)
        if one.returncode or len(re.findall(r'^ +15 ', out, re.M)) != 3:
            fail(f'twelve at once: {out}')


def check_live(job):
    """The table on a terminal, until ^C."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(PTLSTAT, [PTLSTAT, '-i', '0.1', str(job.pid)])
    said, patience = b'', Patience()
    while said.count(b'\033[H') < 4 and not patience.is_over():
        if select.select([terminal], [], [], 1)[0]:
            said += os.read(terminal, 65536)
    os.write(terminal, b'\x03')
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    if said.count(b'\033[H') < 4 or b'16 nodes, 16 joined' not in said:
        fail(f'live view: {said!r}')
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGINT:
        fail(f'^C: {status}')
    widest = max(len(re.sub(rb'\033\[.', b'', line)) for line in said.split(b'\r\n'))
    if widest > 80:
        fail(f'the table is {widest} wide')
    if not re.search(rb'\nrank .* drops denied trunc', said):
        fail(f'columns that 80 columns must show: {said!r}')


def check_dead(job):
    def dead():
        return picture(job.pid)[0]['nodes'][1]['state'] == 'killed by signal 9'
    until('a killed node is told of', dead)
    node = picture(job.pid)[0]['nodes'][1]
    if node['unseen'] is not None or node['counters']['heartbeat'] < 1:
        fail(f'what the dead left: {node}')


def check_drops(scenes):
    """Each reason has its number and the last case of it."""
    for scene, node, reason, request, rank in (
            (('own', 2), 0, 'match_bits', 'a put of 8 bytes to portal index 4', 1),
            (('denied', 2), 1, 'access_control_not_set', 'a put of 64 bytes to portal index 4', 0),
            (('lateack', 2), 0, 'late_answer', 'a put of 8 bytes', 1),
            (('lost', 2), 0, 'event_lost', None, None)):
        job = picture(scenes[scene].pid)[0]
        check_schema(job)
        drops = [d for d in job['nodes'][node]['drops'] if d['reason'] == reason]
        if len(drops) != 1 or drops[0]['count'] < 1:
            fail(f'{scene}: drops {job["nodes"][node]["drops"]}')
        elif request and (not drops[0]['request'].startswith(request) or
                          drops[0]['rank'] != rank):
            fail(f'{scene}: {drops}')
    if any(n['drops'] for n in picture(scenes[('idle', 2)].pid)[0]['nodes']):
        fail('drops of nodes that have none')


def check_left(job):
    """Counters can be read after their node: it left, and runs; or has ended."""
    for node, state, sent in ((1, 'left', 5), (2, 'exited with status 0', 0)):
        node = picture(job.pid)[0]['nodes'][node]
        check_schema(picture(job.pid)[0])
        if node['state'] != state or node['unseen'] is not None:
            fail(f'what is said of a node that left: {node}')
        elif node['counters']['sent'] != sent or node['peers'] or node['waits']:
            fail(f'what the one that left had done: {node}')
    if not re.search(r'^ +1 +\d+ left ', ptlstat(job.pid), re.M):
        fail('the table shows who left')


# ---- barriers ----

def check_spoiled(nodes, *options):
    """A barrier that a rank spoils by its end names this rank, at each of the others."""
    out = subprocess.run([YOD, '-sz', str(nodes), '--timeout', str(LIMIT), *options, HANG, 'spoiled'],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=LIMIT)
    said = re.findall(r'warn: PtlXBarrier: rank 1 has ended', out.stderr)
    if out.stdout.count('spoiled\n') != nodes - 1 or len(said) != nodes - 1:
        fail(f'a spoiled barrier: {out}')


# ---- ends ----

def check_stopped_looker(job):
    """It holds up neither others nor the end of the job."""
    looker = subprocess.Popen([PTLSTAT, '-i', '0.05', '-c', '100000', str(job.pid)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.2)
    looker.send_signal(signal.SIGSTOP)
    picture(job.pid)
    end(job)
    looker.send_signal(signal.SIGCONT)
    if looker.wait(timeout=LIMIT) != 1:
        fail('a looker ends with the job')


def check_yod_killed(job):
    until('the job is there', lambda: is_there(job))
    os.kill(picture(job.pid)[0]['yod'], signal.SIGKILL)
    job.wait(timeout=LIMIT)
    said = ptlstat(job.pid, expected=1)
    if 'no job of this user' not in said or 'whose yod was killed is gone' not in said:
        fail(f'yod killed: {said}')


def check_list(job):
    """The list tells one job from another; why without a number takes the newest."""
    row = re.search(rf'^ *{job.pid} +(\S+) +16 +16 +\d\d:\d\d:\d\d +(.*)$', ptlstat(), re.M)
    if not row or row[1] != pwd.getpwuid(os.getuid()).pw_name[:10] or row[2] != 'mp_hang':
        fail(f'the list: {ptlstat()}')

    def start_of(pid):
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as f:
            return int(f.read().rsplit(')', 1)[1].split()[19])

    def takes_the_newest():  # other jobs of this user may come and go
        run = subprocess.run([PTLSTAT, '--json', 'why'], capture_output=True, text=True,
                             timeout=LIMIT)
        try:
            return start_of(json.loads(run.stdout)['job']) >= start_of(job.pid)
        except (ValueError, OSError):
            return False
    until('why without a number takes the newest job', takes_the_newest)


def check_stranger(job):
    if os.getuid():
        return
    run = subprocess.run([PTLSTAT, str(job.pid)], capture_output=True, text=True,
                         user=65534, group=65534, extra_groups=[])
    if run.returncode != 1 or "another user's job" not in run.stderr:
        fail(f'a stranger: {run}')
    run = subprocess.run([PTLSTAT], capture_output=True, text=True, user=65534)
    if str(job.pid) in run.stdout:
        fail(f'a stranger sees: {run}')


def check_usage():
    for words in (['-i', 'x', '1'], ['-c', '0', '1'], ['why', 'why'], ['1', '2'], ['-z'],
                  ['-i'], ['4711x'], ['0'], ['-i', '1e9', '1']):
        said = ptlstat(*words, expected=2)
        if said.count('\n') != 1 or not said.startswith('ptlstat: '):
            fail(f'{words}: {said}')
    ptlstat(2 ** 31 - 1, expected=1)


def check_full():
    for words in ([], ['--json'], ['--help']):
        with open('/dev/full', 'wb') as full:
            run = subprocess.run([PTLSTAT, *words], stdout=full, stderr=subprocess.PIPE,
                                 text=True, timeout=LIMIT)
        if run.returncode != 1 or 'standard output' not in run.stderr:
            fail(f'{words} to a full place: {run.returncode}, {run.stderr}')


# In a domain a node's slot is not its rank: another job has the first slots.
def check_domain():
    domain = ['--domain', f'ptlstat-{os.getpid()}']
    first = start(2, 'idle', *domain)
    until('the job is there', lambda: is_there(first) and all(
        node['state'] == 'joined' for node in picture(first.pid)[0]['nodes']))
    second = start(2, 'queued', '--keep-going', *domain)
    said = {}
    until('the other one is there', lambda: is_there(second))

    def explains():
        said['it'] = ptlstat('why', second.pid)
        return all(re.search(p, said['it']) for p in SCENES[('queued', 2)])
    until('why in a domain', explains) or print(said['it'])
    third = start(2, 'event', *domain)
    sender = (r'node 0 waits for an event: nothing is known to be lost.*\n|'
              r'node 0 waits for an event, and has not come to the barrier; 1 node waits')
    until('others in the domain may send', lambda: is_there(third) and re.search(
        sender, ptlstat('why', third.pid)))
    end(third)
    end(first, second)


def main():
    os.environ['PTL3_HUGEPAGES'] = 'off'
    scenes = start_scenes()
    doomed, short = start(2, 'idle'), start(2, 'idle')
    check_usage()
    check_full()
    check_yod_killed(doomed)
    until('the job is there', lambda: is_there(short))
    check_stopped_looker(short)
    check_why(scenes)
    check_dead(scenes[('killed', 3)])
    check_drops(scenes)
    check_left(scenes[('left', 3)])
    check_stranger(scenes[('event', 3)])
    check_domain()
    check_spoiled(3)
    end(*scenes.values())
    talk = start(16, 'talk', env={'PTL3_MOVER': 'window', 'PTL3_MEMBARRIER': 'off'})
    until('the job is there', lambda: is_there(talk))
    check_talk(talk)
    check_list(talk)
    check_live(talk)


try:
    main()
finally:
    end(*started)
finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PTL3_LOG: requests that come to nothing are said with their reason: drops.py YOD DROPS"""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../support')
from drive import fail, failures, finish, perform  # noqa: E402
from patience import LIMIT  # noqa: E402

YOD, DROPS = sys.argv[1:3]

PUT = r'a put of 8 bytes to portal index {}, match bits 0x7'
NEAREST = r' from nid \d+, pid \d+ was dropped: no match entry accepts it: the nearest of {} '
# For each reason: the area, and the line.
REASONS = [
    ('match', PUT.format(5000) + r' .*: the highest portal index is \d+$'),
    ('match', r'access control entry 3 is not set; the target sets it with PtlACEntry$'),
    ('match', r'access control entry 900 does not exist: the highest index is \d+$'),
    ('match', r'access control entry 5 is for the process of nid 77, pid any$'),
    ('match', r'access control entry 6 is for portal index 9$'),
    ('match', PUT.format(10) + r' .*: the portal index has no match entry$'),
    ('match', PUT.format(11) + NEAREST.format(2) + r'has match bits 0x17, ignore bits 0x0; '
              r'the request differs in bits 0x10$'),
    ('match', PUT.format(12) + NEAREST.format(1) + r'takes requests of nid 77, pid any only$'),
    ('match', PUT.format(13) + NEAREST.format(1) + r'has no memory descriptor$'),
    ('match', PUT.format(14) + NEAREST.format(1) +
              r'has a descriptor whose threshold is used up$'),
    ('match', PUT.format(15) + NEAREST.format(1) +
              r'has a descriptor that does not allow a put \('),
    ('match', PUT.format(16) + NEAREST.format(1) +
              r'has a descriptor of 64 bytes, and the offset is 100$'),
    ('match', PUT.format(17) + NEAREST.format(1) +
              r'has a descriptor with 4 bytes left, and without PTL_MD_TRUNCATE$'),
    ('match', r'portal index 18.*has a descriptor with less than max_size bytes left$'),
    ('match', PUT.format(19) + r' from .* gets no ACK: .*PTL_MD_ACK_DISABLE'),
    ('match', PUT.format(21) + r' from .* was truncated: the descriptor had 4 bytes left, and has '
              r'PTL_MD_TRUNCATE$'),
    ('event', r'event queue \d+ was full: it holds 2 events$'),
    ('send', PUT.format(14) + r' to .* comes to nothing: the target has no interface with that pid$'),
    ('send', PUT.format(14) + r' to nid 54321, pid 1 comes to nothing: '
             r'no process with that id has joined yet$'),
    ('send', PUT.format(30) + r' to .* comes to nothing: the target has ended$'),
    ('send', PUT.format(30) + r' to .*: the ACK came after its memory descriptor'),
]
SUMS = [r'match: threshold: 3 in all$', r'match: match_bits: 2 in all$',
        r'match: truncated: 2 in all$', r'send: no_such_pid: 2 in all$']


def run(log, status=137):
    env = {k: v for k, v in os.environ.items() if k != 'PTL3_LOG'}
    if log:
        env['PTL3_LOG'] = log
    job = perform(YOD, '-sz', 3, '--keep-going', '--timeout', LIMIT, DROPS, env=env)
    if job.returncode != status:
        fail(f'PTL3_LOG={log}: status {job.returncode}: {job.stderr}')
    return [line for line in job.stderr.splitlines() if line.startswith('p3[')]


def find(lines, area, pattern):
    return [line for line in lines
            if re.search(r'\] drops ' + area + ': .*' + pattern, line)]


def check_reasons():
    lines = run('drops')
    for area, pattern in REASONS:
        if len(find(lines, area, pattern)) != 1:
            fail(f'not once: {area}: {pattern}')
    for pattern in SUMS:
        if not any(re.search(pattern, line) for line in lines):
            fail(f'no sum {pattern}')
    if any(line.endswith(': 1 in all') for line in lines):
        fail('a second line for one case')
    if failures:
        print('\n'.join(lines))


def check_areas():
    lines = run('off,send:drops')
    for area, pattern in REASONS:
        if len(find(lines, area, pattern)) != (area == 'send'):
            fail(f'only send: {area}: {pattern}')
    if any(not re.search(r'\] drops send: ', line) for line in lines):
        fail(f'another area: {lines}')


def check_levels():
    for level in (None, 'off', 'error', 'warn', 'info'):
        lines = run(level)
        if any('] drops ' in line for line in lines):
            fail(f'PTL3_LOG={level}: {lines}')
        said = sum('] info nic: node ' in line and ' mode ' in line for line in lines)
        if said != (3 if level == 'info' else 0):
            fail(f'PTL3_LOG={level}: {lines}')
    lines = run('debug')
    for what in ('] debug peer: node 1 ', '] drops match: ', '] info nic: node 2 of 3: '):
        if not any(what in line for line in lines):
            fail(f'PTL3_LOG=debug: no {what}')
    if not any(re.search(r'node 2 \(nid \d+, process \d+\) has died', line) for line in lines):
        fail('PTL3_LOG=debug: a death')


def check_values():
    for text in ('loud', 'warn,', 'match', 'match:', ':drops', 'here:drops', 'drops match'):
        env = {**os.environ, 'PTL3_LOG': text}
        job = perform(YOD, '-sz', 3, DROPS, env=env)
        if not job.returncode or f"PTL3_LOG is '{text}'; expected off, error" not in job.stderr:
            fail(f'PTL3_LOG={text}: {job.returncode}: {job.stderr}')


os.environ['PTL3_HUGEPAGES'] = 'off'
check_reasons()
check_areas()
check_levels()
check_values()
finish()

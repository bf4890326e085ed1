#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""portals-info says what is the case: info.py YOD PORTALS_INFO DENY"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../support')
from drive import fail, finish, perform, until  # noqa: E402
from patience import LIMIT  # noqa: E402

YOD, INFO, DENY = sys.argv[1:4]
NAMES = ['segments', 'cma', 'hugepages', 'membarrier', 'pidfd']
LIMITS = ['max_mes', 'max_mds', 'max_eqs', 'max_ac_index', 'max_pt_index', 'max_md_iovecs',
          'max_me_list', 'max_getput_md']


def run(*words, before=(), expected=0, env=None):
    job = perform(*before, INFO, *words, env={**CLEAN, **(env or {})})
    if expected is not None and job.returncode != expected:
        fail(f'{before} {words} {env}: status {job.returncode}: {job.stdout}{job.stderr}')
    return job


def info(**how):
    return json.loads(run('--json', **how).stdout)


def setting(said, name):
    return [s for s in said['settings'] if s['name'] == name][0]


def allowed(said, name):
    return [w for w in said['allowed'] if w['name'] == name][0]


def check_whole():
    said = info()
    if [w['name'] for w in said['allowed']] != NAMES or not all(
            w['why'] for w in said['allowed']):
        fail(f'ways to move data: {said["allowed"]}')
    limits = said['interface']['limits']
    if sorted(limits) != sorted(LIMITS) or min(limits.values()) < 1 or limits[
            'max_pt_index'] < 63:
        fail(f'limits: {limits}')
    if not said['library']['file'].startswith('/') or not os.path.exists(
            said['library']['file']):
        fail(f'the library: {said["library"]}')
    with open('/sys/devices/system/node/online', encoding='ascii') as f:
        last = int(f.read().strip().replace('-', ',').split(',')[-1])
    if not said['numa'] or said['numa'][-1]['node'] != last:
        fail(f'NUMA nodes: {said["numa"]}')
    cpuinfo = {}
    with open('/proc/cpuinfo', encoding='ascii') as f:
        for line in f.read().split('\n\n', 1)[0].splitlines():
            cpuinfo[line.split(':')[0].strip()] = line.partition(':')[2].strip()
    cpu = said['cpu']
    if [cpu['vendor'], cpu['model_name']] != [cpuinfo.get(n) for n in ('vendor_id', 'model name')]:
        fail(f'the CPU: {cpu}')
    for name, of in (('family', 'cpu family'), ('model', 'model')):
        if str(cpu[name]) != cpuinfo.get(of, 'None'):
            fail(f'the CPU: {cpu}')
    flags = cpuinfo.get('flags', '').split()
    if sorted(cpu['features']) != [n for n in ('avx2', 'avx512f', 'erms', 'fsrm') if n in flags]:
        fail(f'features of the CPU: {cpu}')
    libc = os.confstr('CS_GNU_LIBC_VERSION').split()[1]
    if f'libc {libc},' not in cpu['copy']:
        fail(f'the copy: {cpu}')
    if sorted(said['movers']) != ['cma', 'heap', 'window'] or '64 to 512 KiB' not in said[
            'movers']['cma']:
        fail(f'the movers: {said["movers"]}')
    text = run().stdout
    for rule in [cpu['copy'], *said['movers'].values()]:
        if rule not in text:
            fail(f'the text lacks {rule}: {text}')
    for name in NAMES + LIMITS + [s['name'] for s in said['settings']]:
        if f'{name} ' not in text:
            fail(f'the text lacks {name}: {text}')
    version = run('--version').stdout.split()[2].rstrip(',')
    if version not in said['library']['version']:
        fail(f'version {version} of {said["library"]["version"]}')


def check_hugepages():
    def look():
        with open('/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages',
                  encoding='ascii') as f:
            return int(f.read())

    def is_right():  # other programs take hugepages and give them back
        free, is_allowed = look(), allowed(info(), 'hugepages')
        return is_allowed['allowed'] == (free > 0) and f'{free} of ' in is_allowed['why']
    until('free hugepages', is_right)


def check_settings():
    said = info(env={'PTL3_MOVER': 'window', 'PTL3_MODE': 'dedicated', 'PTL3_HUGEPAGES': 'off',
                     'PTL3_NONSENSE': '1'})
    for name, value, origin, was in (('PTL3_MOVER', 'window', 'environment', 'window'),
                                     ('PTL3_MODE', 'dedicated', 'environment', 'dedicated'),
                                     ('PTL3_MEMBARRIER', 'on', 'default', None),
                                     ('PTL3_HEAP', '256M', 'default', None)):
        s = setting(said, name)
        if (s['value'], s['from'], s['set'], s['wrong']) != (value, origin, was, None):
            fail(f'{name}: {s}')
    ni = said['interface']
    if ni['mode'] != 'dedicated' or ni['page_bytes'] != 4096:
        fail(f'what the interface got: {ni}')
    if len(said['unknown']) != 1 or 'PTL3_NONSENSE' not in said['unknown'][0]:
        fail(f'a setting that there is not: {said["unknown"]}')
    if info(env={'PTL3_DOMAIN': 'there'})['settings'] and setting(
            info(env={'PTL3_DOMAIN': 'there'}), 'PTL3_DOMAIN')['value'] != 'there':
        fail('the domain that others would be met in')
    wrong = run('--json', expected=1, env={'PTL3_MOVER': 'maybe'})
    said = json.loads(wrong.stdout)
    if "PTL3_MOVER is 'maybe'; expected" not in setting(said, 'PTL3_MOVER')['wrong'] or said[
            'interface']['opened']:
        fail(f'a wrong value: {wrong}')


def check_denied():
    job = run('--json', before=[DENY], expected=None)
    if job.returncode == 77:
        print('skipped: no filter of system calls')
        return
    cma = allowed(json.loads(job.stdout), 'cma')
    if cma['allowed'] or 'Operation not permitted' not in cma['why']:
        fail(f'process_vm_readv is denied: {cma}')


def check_movers():
    lengths = [1 << n for n in range(12, 23)]
    for before in [], [DENY]:
        job = run('--movers', '--json', before=before, expected=None)
        if before and job.returncode == 77:
            return
        rows = json.loads(job.stdout)['trial']
        if [row['bytes'] for row in rows] != lengths or not all(
                float(row['us']) > 0 and 0 < row['percent'] <= 100 for row in rows):
            fail(f'{before} the trial of movers: {rows}')
        if rows[0]['mover'] != 'cells' or rows[-1]['mover'] == 'cells' or not rows[-1][
                'us_by_windows']:
            fail(f'{before} short puts are copied, and long ones are not: {rows}')
        reads = [row for row in rows if row['mover'] == 'reads' or row['us_by_reads']]
        if bool(reads) == bool(before):
            fail(f'{before} reads: {rows}')
    wrong = run('--movers', expected=1, env={'PTL3_MODE': 'maybe'})
    if 'PTL3_MODE' not in wrong.stderr or wrong.stdout:
        fail(f'a job that cannot start: {wrong}')


def check_cpus():
    first = sorted(os.sched_getaffinity(0))[0]
    said = info(before=['taskset', '-c', str(first)])
    if said['machine']['cpus'] != str(first) or said['machine']['usable'] != 1:
        fail(f'one CPU: {said["machine"]}')


def check_ranks():
    # A line is longer than what a pipe takes at once, so yod has to keep the ranks' apart.
    job = perform(YOD, '--tag', '-sz', 2, '--mode', 'park', '--timeout', LIMIT, INFO, '--json',
                  env=CLEAN)
    said = [json.loads(line.partition(' ')[2]) for line in job.stdout.splitlines()]
    if job.returncode or [s['interface']['mode'] for s in said] != ['park', 'park']:
        fail(f'two ranks: {job}')


def check_usage():
    for word in ('--nonsense', '-x', 'word', '--json=1'):
        job = run(word, expected=2)
        if job.stderr.count('\n') != 1 or not job.stderr.startswith('portals-info: '):
            fail(f'{word}: {job}')
    with open('/dev/full', 'wb') as full:
        job = subprocess.run([INFO], stdout=full, stderr=subprocess.PIPE, text=True, env=CLEAN)
    if job.returncode != 1 or 'standard output' not in job.stderr:
        fail(f'a full place: {job}')


CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(('PTL3_', 'PTL_', 'OMPI_', 'PMI', 'SLURM_'))}
check_whole()
check_hugepages()
check_settings()
check_denied()
check_movers()
check_cpus()
check_ranks()
check_usage()
finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the output of programs that a person uses for the first time: first_contact.py HANG

P3_BIN has the programs, P3_TUTORIAL those of the tutorial.  The messages of yod itself are
in yod_errors.txt."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../support')
from drive import fail, finish, perform  # noqa: E402
from patience import LIMIT, Patience  # noqa: E402

BIN, TUTORIAL, HANG = os.environ['P3_BIN'], os.environ['P3_TUTORIAL'], sys.argv[1]
YOD, PTLSTAT = f'{BIN}/yod', f'{BIN}/ptlstat'


def expect(right, what, run=None):
    if right:
        return
    fail(what)
    if run:
        print(f'  status {run.returncode}, stdout {run.stdout!r}, stderr {run.stderr!r}')


def start(*command, **env):
    return perform(*command, env={**os.environ, 'PTL3_HUGEPAGES': 'off', **env})


def lines(text):
    """Return the lines of a text, except those of yod itself."""
    return [line for line in text.splitlines() if not line.startswith('yod: ')]


# ---- examples ----

def example(ranks, status, out, err, program, *arguments):
    """Run an example; expect the status, and lines that match out and err in any order."""
    name = f'yod -sz {ranks} {program} {" ".join(arguments)}'
    path = program if '/' in program else f'{BIN}/{program}'
    run = start(YOD, '-sz', ranks, path, *arguments)
    expect(run.returncode == status, f'{name}: status {run.returncode}, not {status}', run)
    for stream, patterns in ((run.stdout, out), (run.stderr, err)):
        got = lines(stream)
        expect(len(got) == len(patterns), f'{name}: {len(patterns)} lines expected', run)
        for pattern in patterns:
            expect(any(re.fullmatch(pattern, line) for line in got),
                   f'{name}: no {pattern!r}', run)


def examples(folder):
    for program, wrong in (('unexpected', (1, 3)), ('pingpong', (1, 3))):
        for ranks in wrong:
            s = '' if ranks == 1 else 's'
            example(ranks, 2, [], [f'expected 2 ranks, as in yod -sz 2 {program}; '
                                   f'this job has {ranks} rank{s}'], program)
    example(5, 2, [], ['expected a divisor of 96 ranks, .* this job has 5 ranks'], 'halo')
    example(2, 0, [r'120 messages; \d+ came before they were asked for'], [], 'unexpected')
    example(2, 0, [r' +\d+ bytes +[0-9.]+ us'] * 7, [], 'pingpong')

    example(2, 2, [], ['expected at most one name, .* halo out.pgm; this job has 2 arguments'],
            'halo', 'a', 'b')
    example(2, 1, ['2 ranks: the same .*'],
            [f'halo: {folder}/none/out.pgm: No such file or directory; expected a file that '
             'rank 0 can write; choose another'], 'halo', f'{folder}/none/out.pgm')

    example(2, 2, [], ['expected 3 ranks or more, as in yod -sz 3 fileserver FILE; '
                       'this job has 2 ranks'], 'fileserver', f'{folder}/new')
    example(3, 2, [], ['expected the name of a new file, as in yod -sz 3 fileserver FILE; '
                       'this job has 0 arguments'], 'fileserver')
    mine = f'{folder}/mine'
    with open(mine, 'w') as f:
        f.write('what I have written')
    example(3, 1, [], [f'fileserver: {mine}: File exists; expected a name for a new file; '
                       'choose another'], 'fileserver', mine)
    with open(mine) as f:
        expect(f.read() == 'what I have written', 'fileserver has changed a file of mine')
    example(4, 0, [f'2 clients wrote and read 64 blocks of {folder}/new; 3 requests of '
                   'rank 3 were refused'], [], 'fileserver', f'{folder}/new')

    example(3, 0, [f'rank {i} of 3 is process .*' for i in range(3)], [], f'{TUTORIAL}/tutorial_1')
    example(3, 0, [f'rank {i}: rank {(i + 2) % 3} has put its number here' for i in range(3)], [],
            f'{TUTORIAL}/tutorial_2')
    example(3, 0, ['rank 1: 3 messages have come, .*'], [], f'{TUTORIAL}/tutorial_3')
    example(3, 0, ['rank 1: received 500 messages .*'], [], f'{TUTORIAL}/tutorial_4')
    example(3, 0, [f'rank {i}: received .* from rank {(i + 2) % 3}' for i in range(3)], [],
            f'{TUTORIAL}/tutorial_5')
    example(3, 0, [f'rank {i}: received 180 messages, .*' for i in range(3)], [],
            f'{TUTORIAL}/tutorial_6')
    for step in (3, 4):
        example(1, 1, [], [f'rank 0: wrong: 1 rank; expected 2 or more, as in yod -sz 2 ./{step}'],
                f'{TUTORIAL}/tutorial_{step}')


# ---- filecast into a pipe that is read late ----

def casts(folder):
    os.makedirs(f'{folder}/pipes')
    os.mkfifo(f'{folder}/pipes/1')
    with open(f'{folder}/file', 'wb') as f:
        f.truncate(30 << 20)
    script = (f'(sleep 0.5; exec cat) <{folder}/pipes/1 >{folder}/copy & '
              f'{YOD} -sz 2 {BIN}/filecast {folder}/file {folder}/pipes; wait')
    run = start('/bin/sh', '-c', script)
    expect(re.fullmatch(r'all 2 ranks agree; [0-9.]+ s, [0-9.]+ MB/s', run.stdout.splitlines()[-1]),
           'filecast into a pipe', run)


# ---- a setting that makes no sense ----

def settings():
    for name in ('PTL3_MODE', 'PTL3_HEAP', 'PTL3_NID', 'PTL3_DOMAIN', 'PTL3_MOVER'):
        run = start(f'{BIN}/hello', **{name: 'a:b'})
        said = [line for line in run.stderr.splitlines() if name in line]
        expect(run.returncode == 1 and len(said) == 1 and 'expected' in said[0]
               and run.stderr.splitlines()[1:] == ['PtlNIInit: PTL_FAIL'],
               f'{name}=a:b without yod', run)


# ---- help without an interface ----

def helps():
    for program in ('portalperf', 'matchperf', 'cmdperf'):
        broken = {'PTL3_MODE': 'no-such-mode'}
        run = start(f'{BIN}/{program}', '--help', **broken)
        expect(run.returncode == 0 and run.stdout.startswith('usage: ') and not run.stderr,
               f'{program} --help starts the interface', run)
        alone = run.stdout
        run = start(YOD, '-sz', 2, f'{BIN}/{program}', '--help')
        expect(run.returncode == 0 and run.stdout == alone, f'two ranks: {program} --help', run)
        run = start(YOD, '-sz', 2, f'{BIN}/{program}', '--no-such-option')
        expect(run.returncode == 2 and
               lines(run.stderr) == [f'{program}: --no-such-option: not an option of {program}; '
                                     f'{program} --help lists all'],
               f'two ranks: {program} --no-such-option', run)


# ---- ptlstat on a narrow terminal ----

def on_terminal(columns, *command):
    """Return the output of a command on a terminal of this width, as lines."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 40, columns, 0, 0))
        os.execv(command[0], list(map(str, command)))
    text = b''
    try:
        while part := os.read(fd, 65536):
            text += part
    except OSError:
        pass
    os.close(fd)
    os.waitpid(pid, 0)
    return re.sub('\x1b\\[[A-Z]', '', text.decode()).replace('\r', '').splitlines()


def last_picture(columns, job):
    """Return ptlstat's last table; its numbers stand still, since the nodes wait."""
    shown = on_terminal(columns, PTLSTAT, '-i', '0.1', '-c', 2, job)
    at = max(i for i, line in enumerate(shown) if line.startswith('job '))
    return shown[at:]


def narrow():
    job = subprocess.Popen([YOD, '-sz', '2', '--timeout', str(LIMIT), HANG, 'event'],
                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    patience = Patience()
    while not patience.is_over() and '1 node waits for it' not in start(
            PTLSTAT, 'why', job.pid).stdout:
        time.sleep(0.05)
    wide, thin = last_picture(250, job.pid), last_picture(80, job.pid)
    expect(len(wide) == len(thin) == 4, f'ptlstat shows {wide} and {thin}')
    for full, cut in zip(wide[1:], thin[1:]):
        expect(len(cut) == 79 and cut.endswith('>'), f'80 columns do not mark the cut: {cut!r}')
        words, all_words = cut[:-1].split()[6:], full.split()[6:]
        expect(words == all_words[:len(words)], f'80 columns cut a word: {cut!r} of {full!r}')
    expect(not any(line.endswith('>') for line in wide), 'nothing is cut, and marked')
    job.send_signal(signal.SIGTERM)
    job.wait()


with tempfile.TemporaryDirectory() as scratch:
    examples(scratch)
    casts(scratch)
settings()
helps()
narrow()
finish()

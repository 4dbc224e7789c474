#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Record the evidence that unit/accuracy/test_replay.c makes figures of: see bench_freeze.c.

usage: freeze.py DIR PYTHON [PROGRAM ...]
       freeze.py --pack DIR

The first records the programs of programs.py and three of windows.py (default: all of them), half a minute for
each, into DIR, as root, on a machine that does nothing else. The second packs what is in DIR into unit/accuracy/evidence, a file per
version of Python. Then `PYPROF_REPLAY_UPDATE=1` makes the test write what it found, to be compared next time.
"""
import gzip
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EVIDENCE = os.path.join(HERE, '..', 'unit', 'accuracy', 'evidence')
OF_WINDOWS = ['busy', 'sleeping', 'server']
BUILD = os.environ.get('PYPROF_BUILD', 'build')


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def record(directory, python, names):
    os.makedirs(directory, exist_ok=True)
    version = output(python, '-c', 'import sys; print("%d.%d.%d" % sys.version_info[:3])').strip()
    listed = output(python, os.path.join(HERE, 'programs.py'), '--list').split()
    for name in names or listed + OF_WINDOWS:
        print(version, name, flush=True)
        subprocess.run([os.path.join(BUILD, 'tests', 'bench', 'bench_freeze'), python, version,
                        directory, name], check=True)


def pack(directory):
    """The same files make the same archive."""
    versions = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), 'rb') as f:
            versions.setdefault(name.rsplit('.', 2)[0], []).append(f.read())
    os.makedirs(EVIDENCE, exist_ok=True)
    for version, texts in versions.items():
        with open(os.path.join(EVIDENCE, version + '.gz'), 'wb') as out:
            out.write(gzip.compress(b''.join(texts), 9, mtime=0))


def main():
    if len(sys.argv) == 3 and sys.argv[1] == '--pack':
        pack(sys.argv[2])
    elif len(sys.argv) >= 3:
        record(sys.argv[1], sys.argv[2], sys.argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: BSD-2-Clause
"""Functions that wait for a known reason: run.py waits [SECONDS] [FUNCTION...]

Each waits for SECONDS, and measures its own wall time minus CPU time around the call: without and with the
time that a hypervisor stole, which counts as waiting if it is found. The result has that in seconds, by
function, with the reason; `least`: the minimum of the wait. `told`: a child waits until the observer sends a
line.
"""

import _thread
import json
import os
import select
import signal
import socket
import tempfile
import time

import proto
import taskclock

WARM = 0


def thread_time():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def sleep(seconds):
    time.sleep(seconds)


def select_nothing(seconds):
    select.select([], [], [], seconds)


def later(seconds, do):
    """Call do() in a thread after this many seconds."""
    time.sleep(seconds)
    do()


def take_lock(lock):
    lock.acquire()


def receive(sock):
    sock.recv(1)


def read_pipe(fd):
    os.read(fd, 1)


def poll_socket(poll):
    poll.poll()


def sync_file(fd):
    for _ in range(20):
        os.write(fd, b"x" * 4096)
        os.fsync(fd)


def wait_child(pid):
    os.waitpid(pid, 0)


def spin_beside(seconds):
    """Beside a process that spins on the same CPU."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def spin_limited(seconds):
    """In a cgroup with a CPU limit."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def spin(seconds):
    """One of two functions that compete for the GIL, without calls that are traced."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def timed(into, reason, least, fn, *args):
    clock = taskclock.open_clock()
    task, cpu, wall = taskclock.read(clock), thread_time(), time.perf_counter()
    fn(*args)
    wall, cpu, task = time.perf_counter() - wall, thread_time() - cpu, (task, taskclock.read(clock))
    os.close(clock)
    into.append([fn.__name__, reason, least, wall - taskclock.seconds(*task), wall - cpu])


def run_lock(into, seconds):
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(later, (seconds, lock.release))
    timed(into, "lock", seconds * 0.9, take_lock, lock)


def run_socket(into, seconds):
    a, b = socket.socketpair()
    _thread.start_new_thread(later, (seconds, lambda: b.send(b"x")))
    timed(into, "io_socket", seconds * 0.9, receive, a)
    poll = select.poll()
    poll.register(a, select.POLLIN)
    _thread.start_new_thread(later, (seconds, lambda: b.send(b"x")))
    timed(into, "io_poll", seconds * 0.9, poll_socket, poll)


def run_pipe(into, seconds):
    r, w = os.pipe()
    _thread.start_new_thread(later, (seconds, lambda: os.write(w, b"x")))
    timed(into, "io_pipe", seconds * 0.9, read_pipe, r)


def run_file(into, seconds):
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.abspath(__file__))) as f:
        timed(into, "io_disk", 0, sync_file, f.fileno())


def run_child(into, seconds):
    pid = os.fork()
    if not pid:
        time.sleep(seconds)
        os._exit(0)
    timed(into, "process", seconds * 0.9, wait_child, pid)


def run_told(into, seconds):
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        os.read(r, 1)
        os._exit(0)
    proto.wait()
    os.write(w, b"x")
    timed(into, "process", 0, wait_child, pid)


def run_beside(into, seconds):
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(cpus)])
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        while True:
            pass
    timed(into, "runnable", seconds / 4, spin_beside, seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.sched_setaffinity(0, cpus)


def run_limited(into, seconds):
    timed(into, "runnable", seconds / 4, spin_limited, seconds)


def spin_and_tell(seconds, into, done):
    timed(into, "gil", seconds / 8, spin, seconds)
    done.release()


def run_gil(into, seconds):
    own, done = [[], []], [_thread.allocate_lock(), _thread.allocate_lock()]
    for i in range(2):
        done[i].acquire()
        _thread.start_new_thread(spin_and_tell, (seconds, own[i], done[i]))
    for lock in done:
        lock.acquire()
    into.append(["spin", "gil", seconds / 2] + [sum(w) for w in zip(*(v[0][3:] for v in own))])


def run_sleep(into, seconds):
    timed(into, "sleep", seconds, sleep, seconds)
    timed(into, "sleep", seconds, select_nothing, seconds)


RUNS = {"sleep": run_sleep, "lock": run_lock, "socket": run_socket, "pipe": run_pipe,
        "file": run_file, "child": run_child, "beside": run_beside, "gil": run_gil, "limited": run_limited, "told": run_told}


def main(seconds="0.1", *which):
    into = []
    for name in which or sorted(set(RUNS) - {"limited", "told"}):
        RUNS[name](into, float(seconds))
    return json.dumps({name: {"reason": reason, "least": least, "waits": waits}
                       for name, reason, least, *waits in into})

# SPDX-License-Identifier: BSD-2-Clause
"""A process whose main thread ends while another continues: leader.py

Prints `ready`, then a thread executes commands from stdin:

    leave    the main thread ends: `left`
    work N   calls work() N times: `worked`
    fork     forks a child that ends at once, and waits for it: `forked`
    move     another thread executes commands from now on, and this one ends: `moved`
    stop     or the end of stdin: exit with 0
"""

import _thread
import ctypes
import os
import warnings

from proto import read_line, say


def state_of_the_leader():
    with open("/proc/self/stat") as f:
        return f.read().rpartition(")")[2].split()[0]


def work():
    return 1


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def leave(lock):
    lock.release()
    while state_of_the_leader() != "Z":
        pass


def obey(lock, tasks=()):
    if tasks:
        # the former thread has ended when there are no more tasks than before this one was started
        while len(os.listdir("/proc/self/task")) > len(tasks):
            pass
        say("moved")
    while True:
        words = read_line().split()
        if words[0] == "leave":
            leave(lock)
            say("left")
        elif words[0] == "work":
            for _ in range(int(words[1])):
                work()
            say("worked")
        elif words[0] == "move":
            _thread.start_new_thread(obey, (lock, os.listdir("/proc/self/task")))
            return
        elif words[0] == "fork":
            fork()
            say("forked")
        else:
            os._exit(0)


def main():
    warnings.simplefilter("ignore")  # about forking a process with threads
    lock = _thread.allocate_lock()
    pthread_exit = ctypes.CDLL(None).pthread_exit
    lock.acquire()
    _thread.start_new_thread(obey, (lock,))
    say("ready")
    lock.acquire()
    pthread_exit(None)


main()

# SPDX-License-Identifier: BSD-2-Clause
"""A process and its forked children, which execute commands: process_tree.py

Prints `ready`, then executes commands from stdin. Members are numbered from 0, the first process.

    fork BY N      member BY forks N members: `child NUMBER PID` each, then `forked`
    work M N       member M calls work() N times: `worked`
    burn MS M...   members M call one(), two() and three(), which take 1/6, 2/6 and 3/6 of the time,
                   until each has used MS milliseconds of CPU time: `burned ROUNDS MICROSECONDS`
                   of each, in this order
    burst N        N children, each of which calls work() 10 times and ends at once: `burst`
    other M        member M executes another program, which stays until M's release: `other`
    again M        member M executes this program again and continues with commands: `again`
    thread M       as again, executed by a thread that is not the leader
    end M          member M ends: `ended`
    stop           or the end of stdin: all members end, exit with 0
"""

import os
import select
import sys
import threading
import time
import warnings

from proto import read_line, say

MEMBERS = 64
OTHER = "echo other >&%d; read -t 60 line <&%d"


def work():
    return 1


def works(n):
    return sum(work() for _ in range(n))


def spin(n):
    while n:
        n -= 1


def one():
    spin(1500)


def two():
    spin(3000)


def three():
    spin(4500)


def burn(ms):
    """Uses CPU time; its own is less than a hundredth. Returns the line to say."""
    begun = cpu = time.process_time()
    rounds = 0
    while cpu - begun < ms / 1e3:
        rounds += 1
        one()
        two()
        three()
        cpu = time.process_time()
    return "burned %d %d" % (rounds, (cpu - begun) * 1e6)


class Life:
    """A pipe that only the first process can write to: at its end, that process is gone."""
    reader = writer = -1

    @classmethod
    def begin(cls):
        cls.reader, cls.writer = os.pipe()
        os.set_inheritable(cls.reader, True)

    @classmethod
    def order(cls, fd):
        """Returns the next line from fd."""
        if cls.reader in select.select([fd, cls.reader], [], [])[0]:
            os._exit(0)
        return read_line(fd)


class Member:
    """One process's pipes: commands to it, responses from it."""

    def __init__(self, number, fds=None):
        self.number = number
        if not fds:
            fds = os.pipe() + os.pipe()
            for fd in fds:
                os.set_inheritable(fd, True)
        self.fds = fds
        self.orders, self.order, self.answers, self.answer = fds

    def send(self, line):
        os.write(self.order, (line + "\n").encode())

    def answered(self):
        return read_line(self.answers)

    def ask(self, line):
        self.send(line)
        return self.answered()

    def reply(self, line):
        os.write(self.answer, (line + "\n").encode())


def execute_again(member):
    me = [str(n) for n in (Life.reader, member.number) + tuple(member.fds)]
    os.execv(sys.executable, [sys.executable, os.path.abspath(__file__)] + me)


def execute_in_a_thread(member):
    threading.Thread(target=execute_again, args=(member,)).start()
    threading.Event().wait()


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:
        pass


def fork_member(members, number):
    pid = os.fork()
    if pid == 0:
        if Life.writer >= 0:
            os.close(Life.writer)
            Life.writer = -1
        obey(members, members[number])
    return pid


def burst(n):
    for _ in range(n):
        pid = os.fork()
        if pid == 0:
            works(10)
            os._exit(0)
        os.waitpid(pid, 0)


def obey(members, me):
    """Main loop of a child."""
    while True:
        words = Life.order(me.orders).split()
        if words[0] == "fork":
            me.reply(str(fork_member(members, int(words[1]))))
        elif words[0] == "work":
            me.reply(str(works(int(words[1]))))
        elif words[0] == "burn":
            me.reply(burn(int(words[1])))
        elif words[0] == "burst":
            burst(int(words[1]))
            me.reply("burst")
        elif words[0] == "other":
            script = OTHER % (me.answer, me.orders)
            os.execv("/bin/bash", ["bash", "-c", script])
        elif words[0] == "again":
            execute_again(me)
        elif words[0] == "thread":
            execute_in_a_thread(me)
        else:
            reap()
            os._exit(0)


def resume(arguments):
    """Entry point of a member that executes this program again."""
    numbers = [int(n) for n in arguments]
    Life.reader = numbers[0]
    me = Member(numbers[1], tuple(numbers[2:]))
    me.reply("again")
    obey([], me)


class First:
    """The first process: member 0, which sends the commands to the others."""

    def __init__(self):
        Life.begin()
        self.members = [Member(i) for i in range(MEMBERS)]
        self.pids = {}
        self.next = 1

    def fork(self, by, n):
        for _ in range(n):
            number = self.next
            self.next += 1
            if by:
                pid = int(self.members[by].ask("fork %d" % number))
            else:
                pid = fork_member(self.members, number)
            self.pids[number] = (by, pid)
            say("child %d %d" % (number, pid))
        say("forked")

    def have_work(self, member, n):
        done = int(self.members[member].ask("work %d" % n)) if member else works(n)
        say("worked" if done == n else "wrong")

    def have_burned(self, numbers):
        """All members after the first number burn at the same time; one line for each."""
        ms, members = numbers[0], numbers[1:]
        for member in members:
            if member:
                self.members[member].send("burn %d" % ms)
        lines = {0: burn(ms)} if 0 in members else {}
        for member in members:
            say(lines[member] if member in lines else self.members[member].answered())

    def end(self, member):
        by, pid = self.pids.pop(member)
        os.write(self.members[member].order, b"stop\n")
        if not by:
            os.waitpid(pid, 0)
        say("ended")

    def run(self):
        say("ready")
        while True:
            words = read_line(0).split()
            if words[0] == "fork":
                self.fork(int(words[1]), int(words[2]))
            elif words[0] == "work":
                self.have_work(int(words[1]), int(words[2]))
            elif words[0] == "burn":
                self.have_burned([int(n) for n in words[1:]])
            elif words[0] == "burst":
                burst(int(words[1]))
                say("burst")
            elif words[0] in ("other", "again", "thread"):
                say(self.members[int(words[1])].ask(words[0]))
            elif words[0] == "end":
                self.end(int(words[1]))
            else:
                for member in list(self.pids):
                    os.write(self.members[member].order, b"stop\n")
                return


def main():
    warnings.simplefilter("ignore")  # about forking a process with threads
    if len(sys.argv) > 1:
        resume(sys.argv[1:])
    First().run()


main()

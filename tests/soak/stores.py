# SPDX-License-Identifier: BSD-2-Clause
"""Receivers of intervals: a ClickHouse server that can be killed, and one that checks each request."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import soak
from soak import Failure

DATABASE = "default"
CONFIG = os.path.join(soak.HERE, "..", "harness", "clickhouse", "config.xml")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url, seconds=soak.DEADLINE):
    with urllib.request.urlopen(url, timeout=seconds) as answer:
        return answer.read()


def fetch_patiently(url):
    """From the daemon, which drops clients of a busy machine."""
    for _ in range(soak.RETRIES):
        try:
            return fetch(url)
        except soak.DROPPED:
            pass
    return fetch(url)


def wait_until(what, condition, seconds=soak.DEADLINE):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(what + " took more than %d s" % seconds)
        time.sleep(0.2)


class ClickHouse:
    def __init__(self, directory):
        self.dir, self.port = os.path.join(directory, "clickhouse"), free_port()
        os.makedirs(os.path.join(self.dir, "data"))
        self.process, self.kills = None, 0
        self.start()

    def start(self):
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.process = subprocess.Popen(
                ["clickhouse-server", "--config-file=" + CONFIG], cwd=self.dir,
                env=dict(os.environ, CLICKHOUSE_PORT=str(self.port)),
                stdout=log, stderr=log, start_new_session=True)
        wait_until("starting ClickHouse", self.is_up)

    def is_up(self):
        try:
            return fetch("http://127.0.0.1:%d/ping" % self.port, 2) == b"Ok.\n"
        except OSError:
            return False

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            self.kills += 1

    def ask(self, question):
        request = urllib.request.Request("http://127.0.0.1:%d/" % self.port, question.encode())
        with urllib.request.urlopen(request, timeout=soak.DEADLINE) as answer:
            return answer.read().decode().split()

    def ids(self):
        """Each stored interval once; equal rows that the engine has not merged yet count as one."""
        return self.ask("SELECT lower(hex(id)) FROM profiles LIMIT 1 BY id")

    @property
    def url(self):
        return "clickhouse+http://127.0.0.1:%d/%s" % (self.port, DATABASE)


class Receiver:
    def __init__(self, directory):
        self.log = os.path.join(directory, "receiver.log")
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(soak.HERE, "..", "harness", "receiver.py"), self.log, "200"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.url = "pyroscope+http://127.0.0.1:%d" % int(self.process.stdout.readline())

    def ids(self):
        """Also checks that each request was right."""
        ids = []
        with open(self.log) as f:
            for line in f:
                record = json.loads(line)
                if record.get("error"):
                    raise Failure("a request was wrong: " + line[:400])
                ids.append(record["id"])
        return ids

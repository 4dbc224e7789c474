#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Debian package under a real systemd, as a service of the virtual machine of systemd.py

A client starts the daemon through its socket; it attaches to a service of another user, whose calls are
known; a member of the group reads; `systemctl stop` leaves clean code. Prints results like guest.py,
then switches the machine off.
"""

import json
import os
import subprocess
import time

import guest
from guest import expect, ran

CALLS = 2345
PROGRAM = """
import os, time
def known(n):
    return n + 1
while True:
    if os.path.exists('/run/known/go'):
        for i in range(%d):
            known(i)
        os.rename('/run/known/go', '/run/known/done')
    time.sleep(0.1)
""" % CALLS


def systemctl(*argv):
    status, out, err = ran(["systemctl", *argv])
    expect(status == 0, "systemctl", argv, ":", out, err)
    return out.strip()


def ctl(*argv):
    status, out, err = ran(["pyprofctl", *argv])
    expect(status == 0, argv, "ended with status", status, err)
    return out


def as_user(user, *argv):
    return ran(["setpriv", "--reuid", user, "--regid", "nogroup", "--init-groups", "--", *argv])[0]


def start_service():
    path = "/usr/local/lib/known.py"
    with open(path, "w") as file:
        file.write(PROGRAM)
    with open("/run/systemd/system/known.service", "w") as file:
        file.write("[Service]\nUser=somebody\nRuntimeDirectory=known\n"
                   "ExecStart=/usr/bin/python3 %s\n" % path)
    systemctl("daemon-reload")
    systemctl("start", "known.service")
    return int(systemctl("show", "-P", "MainPID", "known.service"))


def attached():
    """By the socket unit: nothing has started the daemon before."""
    expect(systemctl("is-active", "pyprofd.socket") == "active", "the socket unit is not active")
    ctl("attach", "--exact", "--yes", str(start_service()))
    return "the daemon, started by its socket, attached to a service of another user"


def pid():
    return int(systemctl("show", "-P", "MainPID", "known.service"))


def exact():
    open("/run/known/go", "w").close()
    guest.eventually(lambda: os.path.exists("/run/known/done"), "the calls")
    doc = json.loads(ctl("snapshot", "-f", "json"))
    calls = guest.functions(doc)["known"]["ncalls"]
    expect(calls == CALLS and doc["exact"], calls, doc["exact"])
    row, = json.loads(ctl("status", "--json"))["targets"]
    return "%d calls, by %s" % (calls, row["mechanism"])


def verified():
    """The unit's restrictions permit the self-test."""
    row, = json.loads(ctl("status", "--json"))["targets"]
    expect(row["self_test"].startswith("passed"), row["self_test"])
    return row["self_test"]


def group():
    member = as_user("member", "pyprofctl", "status"), as_user("member", "pyprofctl", "shutdown")
    stranger = as_user("stranger", "pyprofctl", "status")
    expect(member == (0, 4) and stranger == 4, member, stranger)
    return "a member reads and does not control, others do neither"


def stopped():
    expect(guest.text_differs(pid()) > 0, "nothing is traced")
    systemctl("stop", "pyprofd.service")
    result = systemctl("show", "-P", "Result", "pyprofd.service")
    expect(result == "success" and guest.text_differs(pid()) == 0, result, "or code is not clean")
    return "clean"


def exposure():
    status, out, err = ran(["systemd-analyze", "security", "--no-pager", "pyprofd.service"])
    expect(out.strip(), err)
    return out.strip().splitlines()[-1].lstrip("→ ")


def main():
    with open("/dev/console", "w") as console:
        os.dup2(console.fileno(), 1)
    guest.report("kernel", "ok", os.uname().release)
    for function in (attached, exact, verified, group, stopped, exposure):
        guest.perform("unit_" + function.__name__, function)
    guest.report("end", "ok", "")
    time.sleep(1)
    subprocess.run(["systemctl", "poweroff", "--force", "--force"])


main()

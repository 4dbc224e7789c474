#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Are the counts exact in programs that embed Python? As root: hosts.py SUITE...

Runs tests/targets/host.py in gdb, vim, uwsgi, mod_wsgi and PL/Python of these Debian releases, each
in a root directory made by fetch-hosts.sh, traces it with --builtins, and compares the counts
with the program's own. Exits with 1 if one differs.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("PYPROF_BUILD", "build"))
SECONDS = 60
CALLS = 20000
EXPECTED = {"once": CALLS, "<lambda>": CALLS, "<built-in method builtins.len>": CALLS,
            "<method 'append' of 'list' objects>": CALLS, "<built-in method builtins.sorted>": 1}
APACHE = """ServerRoot /etc/apache2
PidFile /tmp/apache.pid
Listen 127.0.0.1:18080
ServerName localhost
User nobody
Group nogroup
ErrorLog /tmp/error.log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule wsgi_module /usr/lib/apache2/modules/mod_wsgi.so
WSGIImportScript /tmp/host.py process-group=%{GLOBAL} application-group=%{GLOBAL}
"""
POSTGRES = ('D=/tmp/pg; export PATH=$(echo /usr/lib/postgresql/*/bin):$PATH; '
            'mkdir $D && chown 65534 $D && cd / && '
            'U="chroot --userspec=65534:65534 /"; '
            '$U $(type -P initdb) -D $D --locale=C -U x > /dev/null && '
            'printf \'CREATE EXTENSION plpython3u;\\nDO $$ exec(open("/tmp/host.py").read(), {}) '
            '$$ LANGUAGE plpython3u;\\n\' | '
            '$U $(type -P postgres) --single -D $D postgres')
HOSTS = {
    "gdb": "gdb -nx -batch -x /tmp/host.py",
    "vim": "vim.nox -u NONE -es -c 'py3file /tmp/host.py' -c q",
    "uwsgi": "cd /usr/lib/uwsgi/plugins && set -- python3??_plugin.so && "
             "uwsgi-core --plugin ${1%_plugin.so} --http-socket 127.0.0.1:18081 "
             "--wsgi-file /tmp/host.py",
    "mod_wsgi": "apache2 -X -f /tmp/apache.conf",
    "PL/Python": POSTGRES,
}


def start(root, command):
    tmp = os.path.join(root, "tmp")
    shutil.rmtree(tmp, ignore_errors=True)
    os.mkdir(tmp)
    os.chmod(tmp, 0o1777)
    shutil.copy(os.path.join(HERE, "targets", "host.py"), tmp)
    with open(tmp + "/apache.conf", "w") as out:
        out.write(APACHE)
    with open(root + "/etc/passwd", "w") as out:
        out.write("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    with open(root + "/etc/group", "w") as out:
        out.write("root:x:0:\nnogroup:x:65534:\n")
    script = ("mount -t proc proc {0}/proc && mount --rbind /dev {0}/dev && "
              "exec chroot {0} /bin/bash -c \"$1\"").format(root)
    return subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c",
                             script, "bash", command],
                            stdin=subprocess.DEVNULL, stdout=open(tmp + "/log", "w"),
                            stderr=subprocess.STDOUT, start_new_session=True)


def appeared(process, path):
    deadline = time.time() + SECONDS
    while not os.path.exists(path):
        if process.poll() is not None or time.time() > deadline:
            with open(os.path.dirname(path) + "/log", errors="replace") as log:
                raise RuntimeError("it did not get as far as %s: %s" % (path, log.read()[-600:]))
        time.sleep(0.02)


def descendants(pid):
    try:
        children = open("/proc/%d/task/%d/children" % (pid, pid))
    except FileNotFoundError:
        return []
    with children:
        own = [int(word) for word in children.read().split()]
    return own + [d for child in own for d in descendants(child)]


def end(process):
    # A process that has changed its user does not receive the signal of --kill-child.
    for pid in descendants(process.pid) + [process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def outer_pid(process, inner):
    """Returns the pid of the process that is `inner` in its own PID namespace."""
    for pid in descendants(process.pid):
        with open("/proc/%d/status" % pid) as status:
            for line in status:
                if line.startswith("NSpid:") and line.split()[-1] == inner:
                    return pid
    raise RuntimeError("no process %s" % inner)


def counts(path):
    found = {}
    with open(path) as file:
        report = json.load(file)
    for row in report["functions"]:
        if row["name"] in EXPECTED:
            found[row["name"]] = found.get(row["name"], 0) + row["ncalls"]
    target = report["targets"][0]
    if found != EXPECTED:
        found.update(lost=target["lost"], losses=target["losses"])
    return found


def trace(root, process, directory):
    tmp = root + "/tmp"
    appeared(process, tmp + "/ready")
    with open(tmp + "/ready") as ready:
        pid = outer_pid(process, ready.read())
    env = dict(os.environ, PYPROFD_SOCKET=directory + "/socket")
    ctl = [BUILD + "/pyprofctl"]
    daemon = subprocess.Popen([BUILD + "/pyprofd"], env=env, stderr=subprocess.DEVNULL)
    try:
        while subprocess.call(ctl + ["ping"], env=env, stderr=subprocess.DEVNULL):
            time.sleep(0.05)
        attached = subprocess.run(ctl + ["attach", str(pid), "--exact", "--builtins", "--yes"], env=env,
                                  stderr=subprocess.PIPE)
        if attached.returncode:
            raise RuntimeError(attached.stderr.decode())
        open(tmp + "/go", "w").close()
        appeared(process, tmp + "/done")
        out = directory + "/report.json"
        subprocess.check_call(ctl + ["snapshot", "-f", "json", "-o", out], env=env)
        subprocess.check_call(ctl + ["shutdown"], env=env, stdout=subprocess.DEVNULL)
        daemon.wait()
        return counts(out)
    finally:
        if daemon.poll() is None:
            daemon.kill()
        daemon.wait()


def check(suite, root, host):
    process = start(root, HOSTS[host])
    with tempfile.TemporaryDirectory() as directory:
        try:
            found = trace(root, process, directory)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print("%-10s %-10s FAILED: %s" % (suite, host, error), flush=True)
            return False
        finally:
            open(root + "/tmp/end", "w").close()
            end(process)
    print("%-10s %-10s %s" % (suite, host, "equal" if found == EXPECTED else "DIFFERS: %s" % found),
          flush=True)
    return found == EXPECTED


def main(suites):
    wrong = 0
    for suite in suites or ["bookworm", "trixie"]:
        root = subprocess.check_output([HERE + "/fetch-hosts.sh", suite]).decode().strip()
        for host in HOSTS:
            wrong += not check(suite, root, host)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The image of packaging/Containerfile and the pod of packaging/kubernetes.yaml, without a
container engine: container.py DEB SUITE

The instructions of the recipe are carried out in a clean root directory of the release. pyprofd
then runs in it as in the pod: namespaces of its own, but the host's pids; the root directory
read-only; the pod's capabilities and volumes and no others. It profiles a process of another user
outside, whose calls are known, and verifies its interpreter. Then once more without each of the
capabilities: each is needed for something. Exits with 77 if the root directory cannot be had.
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALLS = 12345
USER = 12346
TARGET = """
import sys
def outside(n):
    return n + 1
print("ready", flush=True)
for line in sys.stdin:
    for i in range(%d):
        outside(i)
    print("done", flush=True)
""" % CALLS
NEWNS, NEWUTS, NEWIPC, NEWNET = 0x00020000, 0x04000000, 0x08000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}
# What CAP_SYS_ADMIN includes is needed where that is not granted.
INCLUDED = ("BPF", "PERFMON", "CHECKPOINT_RESTORE")
# What this target does not need: its interpreter is the program itself, no library in another mount
# namespace; and a scratch process can keep a bounding set, from which it cannot gain anything. Nor does
# an exact trace need precedence.
SPARE = ("CHECKPOINT_RESTORE", "SETPCAP", "SYS_NICE")

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        sys.exit("container: %s: %s" % (what, os.strerror(ctypes.get_errno())))


def mount(source, target, kind=None, flags=0, data=None):
    encoded = [a.encode() if a else None for a in (source, target, kind, data)]
    check(libc.mount(encoded[0], encoded[1], encoded[2], flags, encoded[3]), "mount " + target)


# ---- the image


def instructions(path):
    for line in open(path).read().replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split(None, 1)


class Image:
    def __init__(self, work, deb, suite):
        self.root, self.args = os.path.join(work, "root"), {"DEB": deb, "SUITE": suite}
        self.env, self.entry = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, None
        for word, rest in instructions(TOP + "/packaging/Containerfile"):
            # An ARG without a value is given; one with a value has a default.
            if word != "RUN":
                rest = re.sub(r"\$\{(\w+)\}", lambda m: self.args[m.group(1)], rest)
            getattr(self, "do_" + word.lower())(rest)

    def do_arg(self, rest):
        name, _, value = rest.partition("=")
        self.args.setdefault(name, value)

    def do_from(self, rest):
        suite = re.match(r"docker\.io/library/debian:(\w+)-slim$", rest).group(1)
        done = subprocess.run([TOP + "/tests/roots.sh", "clean", suite], stdout=subprocess.PIPE)
        if done.returncode:
            sys.exit(done.returncode)
        os.mkdir(self.root)
        tar = done.stdout.decode().strip()
        subprocess.run(["tar", "-x", "-f", tar, "-C", self.root], check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy("/etc/" + name, self.root + "/etc/" + name)

    def do_copy(self, rest):
        source, target = rest.split()
        shutil.copy(os.path.join(TOP, source), self.root + target)

    def do_run(self, rest):
        with open(self.root + "/etc/apt/apt.conf.d/99root", "w") as f:
            f.write('APT::Sandbox::User "root";')
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--mount-proc=%s/proc" % self.root, "chroot",
             self.root, "sh", "-c", rest],
            env=dict(self.env, DEBIAN_FRONTEND="noninteractive",
                     **{k: v for k, v in os.environ.items() if k == "http_proxy"}),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit("container: RUN %s:\n%s" % (rest, done.stdout.decode()))

    def do_env(self, rest):
        name, _, value = rest.partition("=")
        self.env[name] = value

    def do_entrypoint(self, rest):
        self.entry = json.loads(rest)


# ---- the pod


class Pod:
    """What the DaemonSet says about its one container. Anything unknown is an error."""

    def __init__(self):
        documents = list(yaml.safe_load_all(open(TOP + "/packaging/kubernetes.yaml")))
        spec = [d for d in documents if d["kind"] == "DaemonSet"][0]["spec"]["template"]["spec"]
        container, = spec["containers"]
        security = container["securityContext"]
        assert spec["hostPID"] and not spec["hostNetwork"]
        assert security["capabilities"]["drop"] == ["ALL"]
        assert security["runAsUser"] == 0 and not security["privileged"]
        assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
        volumes = {v["name"]: v for v in spec["volumes"]}
        assert all("emptyDir" in v for v in volumes.values())
        self.mounts = [m["mountPath"] for m in container["volumeMounts"] if volumes[m["name"]]]
        self.capabilities = security["capabilities"]["add"]
        self.ready = container["readinessProbe"]["exec"]["command"]


def capability_numbers():
    text = open("/usr/include/linux/capability.h").read()
    return {m.group(1): int(m.group(2)) for m in re.finditer(r"#define CAP_(\w+)\s+(\d+)", text)}


def mount_all(root, volumes):
    mount(None, "/", None, REC | PRIVATE)
    mount(root, root, None, BIND | REC)
    mount("proc", root + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    mount(root + "/proc/sys", root + "/proc/sys", None, BIND)
    mount(None, root + "/proc/sys", None, BIND | REMOUNT | RDONLY)
    mount("sysfs", root + "/sys", "sysfs", NOSUID | NODEV | NOEXEC | RDONLY)
    mount("tmpfs", root + "/dev", "tmpfs", NOSUID, "mode=755")
    for name, number in DEVICES.items():
        os.mknod(root + "/dev/" + name, stat.S_IFCHR | 0o666, os.makedev(*number))
        os.chmod(root + "/dev/" + name, 0o666)
    for path in volumes:
        os.makedirs(root + path, exist_ok=True)
        mount("tmpfs", root + path, "tmpfs", NOSUID | NODEV, "mode=0777")
    mount(None, root, None, BIND | REMOUNT | RDONLY)


def enter(root):
    os.chdir(root)
    check(libc.syscall(155, b".", b"."), "pivot_root")
    check(libc.umount2(b".", 2), "umount")
    os.chdir("/")


def run_in_pod(image, pod, without):
    """In a child process: become the pod's container."""
    check(libc.unshare(NEWNS | NEWUTS | NEWIPC | NEWNET), "namespaces")
    mount_all(image.root, pod.mounts)
    enter(image.root)
    numbers = capability_numbers_read
    keep = {numbers[name] for name in pod.capabilities if name not in without}
    for number in range(int(last_capability) + 1):
        if number not in keep:
            check(libc.prctl(24, number, 0, 0, 0), "bounding set")
    check(libc.prctl(38, 1, 0, 0, 0), "no_new_privs")
    os.execve(image.entry[0], image.entry, image.env)


capability_numbers_read = capability_numbers()
last_capability = open("/proc/sys/kernel/cap_last_cap").read()


@contextlib.contextmanager
def daemon(image, pod, without=()):
    pid = os.fork()
    if pid == 0:
        try:
            run_in_pod(image, pod, without)
        finally:
            os._exit(126)
    try:
        deadline = time.monotonic() + 60
        while ctl(pid, image, *pod.ready)[0] != 0:
            if time.monotonic() > deadline or os.waitpid(pid, os.WNOHANG)[0]:
                sys.exit("container: pyprofd did not start without %s" % without)
            time.sleep(0.05)
        yield lambda *args: ctl(pid, image, "pyprofctl", *args)
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


def ctl(pid, image, *argv):
    """As kubectl exec."""
    done = subprocess.run(["nsenter", "--target", str(pid), "--mount", "--net", "--uts", "--ipc",
                           "--root", "--wd=/proc/%d/root" % pid, *argv],
                          env=image.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextlib.contextmanager
def target():
    def become():
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)

    p = subprocess.Popen(["/usr/bin/python3", "-c", TARGET], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, preexec_fn=become, cwd="/")
    try:
        assert p.stdout.readline() == b"ready\n"
        yield p
    finally:
        p.kill()
        p.wait()


def expect(ok, *what):
    if not ok:
        sys.exit("container: " + " ".join(str(w) for w in what))


def profile(image, pod):
    """All is exact and verified."""
    with daemon(image, pod) as run, target() as t:
        status, out, err = run("attach", "--exact", str(t.pid))
        expect(status == 0, "attach:", out, err)
        t.stdin.write(b"go\n")
        t.stdin.flush()
        expect(t.stdout.readline() == b"done\n", "the target ended")
        status, out, err = run("snapshot", "-f", "json")
        expect(status == 0, "snapshot:", err)
        calls = [f["ncalls"] for f in json.loads(out)["functions"] if f["name"] == "outside"]
        expect(calls == [CALLS], "calls of outside():", calls)
        status, out, err = run("status", "--json")
        row, = json.loads(out)["targets"]
        expect(row["exact"] and row["lost"] == 0, row)
        expect(row["self_test"].startswith("passed"), "self-test:", row["self_test"])
        print("in the pod: %d of %d calls, self-test %s, by %s" %
              (calls[0], CALLS, row["self_test"], row["mechanism"]))


def outcome(image, pod, without):
    """The exit status of attach, or what the self-test says."""
    with daemon(image, pod, without) as run, target() as t:
        status, out, err = run("attach", "--exact", str(t.pid))
        if status != 0:
            return "attach fails: " + err.strip()
        row, = json.loads(run("status", "--json")[1])["targets"]
        return "self-test " + row["self_test"]


def main():
    deb, suite = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as work:
        image, pod = Image(work, os.path.abspath(deb), suite), Pod()
        profile(image, pod)
        for name in pod.capabilities:
            without = ("SYS_ADMIN", name) if name in INCLUDED else (name,)
            what = outcome(image, pod, without)
            print("without %s: %s" % (" and ".join(without), what), flush=True)
            expect(name in SPARE or not what.startswith("self-test passed"), name, "is not needed")
            if name in INCLUDED and name not in SPARE:
                expect(what.startswith("attach fails"), name, "is not needed")


main()

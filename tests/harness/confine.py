# SPDX-License-Identifier: BSD-2-Clause
"""Run a program under the restrictions of a systemd unit, without systemd: confine.py

usage: confine.py UNIT [--without CAPABILITY] [--writable DIR]... -- PROGRAM ARG...

What the unit's [Service] section takes away is taken away here by the same means: bounding set,
no_new_privs, seccomp filters, mounts, network, cgroups. What grants or describes is passed over; a
directive that is neither known to restrict nor to be harmless is an error, so that a new one is not
forgotten.
"""

import ctypes
import os
import re
import select
import stat
import struct
import subprocess
import sys
import time

UNISTD = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
CAPABILITIES = "/usr/include/linux/capability.h"
NAMESPACES = {"cgroup": 0x02000000, "ipc": 0x08000000, "mnt": 0x00020000, "net": 0x40000000,
              "pid": 0x20000000, "user": 0x10000000, "uts": 0x04000000}
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
HARMLESS = {"Type", "ExecStart", "RuntimeDirectory", "RuntimeDirectoryMode", "CacheDirectory",
            "CacheDirectoryMode", "StateDirectory", "StateDirectoryMode", "Restart", "LimitMEMLOCK",
            "LimitNICE", "UMask", "SystemCallErrorNumber", "OOMPolicy"}
# Covered by the other restrictions: all mounts are read-only, and the filter is an allow-list.
SUBSUMED = {"ProtectSystem", "PrivateTmp", "ProtectClock", "ProtectControlGroups",
            "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules",
            "ProtectKernelTunables", "LockPersonality", "RestrictRealtime", "RestrictSUIDSGID",
            "SystemCallArchitectures", "PrivateMounts", "IPAddressDeny"}
RESTRICTING = {"CapabilityBoundingSet", "NoNewPrivileges", "PrivateNetwork", "SystemCallFilter",
               "RestrictNamespaces", "RestrictAddressFamilies", "MemoryDenyWriteExecute",
               "PrivateDevices", "DevicePolicy", "ProtectHome", "ProtectProc", "MemoryMax", "TasksMax"}
# The devices that DevicePolicy=closed allows, and that PrivateDevices=yes creates in /dev
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9),
           "tty": (5, 0)}

libc = ctypes.CDLL(None, use_errno=True)


def check(ok, what):
    if not ok:
        sys.exit("confine: %s: %s" % (what, os.strerror(ctypes.get_errno())))


def read_unit(path):
    section, unit = "", {}
    for line in open(path):
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            key, _, value = line.partition("=")
            if value.startswith("~"):
                value = " ".join("~" + word for word in value[1:].split())
            unit[key] = unit[key] + " " + value if key in unit else value
    unknown = set(unit) - HARMLESS - SUBSUMED - RESTRICTING
    if unknown:
        sys.exit("confine: what do these do? %s" % " ".join(sorted(unknown)))
    return unit


def numbers_of(header, pattern):
    return {m.group(1): int(m.group(2)) for m in re.finditer(pattern, open(header).read())}


def syscall_group(name):
    """The system calls of an @group and of the groups in it, as reported by systemd."""
    text = subprocess.check_output(["systemd-analyze", "syscall-filter", name]).decode()
    words = [line.strip() for line in text.splitlines()[1:]]
    for word in words:
        if word.startswith("@"):
            yield from syscall_group(word)
        elif word and not word.startswith("#"):
            yield word


def allowed_calls(words):
    """The calls that a SystemCallFilter= allows; it must begin with an allow-list."""
    allowed = set()
    for word in words:
        name = word.lstrip("~")
        names = set(syscall_group(name) if name.startswith("@") else [name])
        allowed = allowed - names if word.startswith("~") else allowed | names
    return sorted(allowed)


class Filter:
    """Classic BPF over struct seccomp_data: number at offset 0, arguments from offset 16."""
    ALLOW, ERRNO = 0x7fff0000, 0x00050000

    def __init__(self):
        self.code = []

    def add(self, code, k, jt=0, jf=0):
        self.code.append(struct.pack("HBBI", code, jt, jf, k))

    def load(self, at):
        self.add(0x20, at)

    def ret(self, value):
        self.add(0x06, value)

    def on_call(self, nr, body):
        """Run body, a list of (code, k, jt, jf), for this system call."""
        self.load(0)
        self.add(0x15, nr, 0, len(body))
        for insn in body:
            self.add(*insn)

    def deny_flags(self, nr, arg, mask, error):
        self.on_call(nr, [(0x20, 16 + 8 * arg, 0, 0), (0x45, mask, 0, 1),
                          (0x06, self.ERRNO | error, 0, 0)])

    def install(self):
        code = b"".join(self.code)
        text = ctypes.create_string_buffer(code, len(code))
        prog = struct.pack("HxxxxxxP", len(self.code), ctypes.addressof(text))
        check(libc.prctl(22, 2, ctypes.create_string_buffer(prog, len(prog)), 0, 0) == 0,
              "seccomp")


def restrict_namespaces(f, calls, allowed):
    denied = 0
    for name, flag in NAMESPACES.items():
        if name not in allowed.split():
            denied |= flag
    f.deny_flags(calls["unshare"], 0, denied, 1)
    f.deny_flags(calls["clone"], 0, denied, 1)
    f.deny_flags(calls["setns"], 1, denied, 1)
    f.on_call(calls["clone3"], [(0x06, f.ERRNO | 38, 0, 0)])
    f.on_call(calls["setns"], [(0x20, 24, 0, 0), (0x15, 0, 0, 1), (0x06, f.ERRNO | 1, 0, 0)])


def filter_of(unit):
    calls = numbers_of(UNISTD, r"#define __NR_(\w+) (\d+)")
    f = Filter()
    allowed = unit["RestrictNamespaces"]
    if allowed == "yes":
        allowed = ""
    restrict_namespaces(f, calls, allowed)
    families = [FAMILIES[name] for name in unit["RestrictAddressFamilies"].split()]
    f.on_call(calls["socket"], [(0x20, 16, 0, 0)] +
              [(0x15, family, len(families) - i, 0) for i, family in enumerate(families)] +
              [(0x06, f.ERRNO | 97, 0, 0)])
    if unit["MemoryDenyWriteExecute"] == "yes":
        f.deny_flags(calls["mprotect"], 2, 4, 1)
        f.on_call(calls["mmap"], [(0x20, 32, 0, 0), (0x54, 6, 0, 0), (0x15, 6, 0, 1),
                                  (0x06, f.ERRNO | 1, 0, 0)])
    f.load(0)
    for name in allowed_calls(unit["SystemCallFilter"].split()):
        if name in calls:
            f.add(0x15, calls[name], 0, 1)
            f.ret(f.ALLOW)
    f.ret(f.ERRNO | 1)
    return f


def mount_devices():
    check(libc.mount(b"tmpfs", b"/dev", b"tmpfs", 0x2 | 0x8, b"mode=0755") == 0, "/dev")
    for name, number in DEVICES.items():
        os.mknod("/dev/" + name, stat.S_IFCHR | 0o666, os.makedev(*number))
        os.chmod("/dev/" + name, 0o666)
    os.symlink("/proc/self/fd", "/dev/fd")


def mount_all(unit, writable):
    """Enter a mount namespace with the unit's /proc and /dev, and with every mount read-only
    except these directories."""
    check(libc.unshare(0x00020000) == 0, "mount namespace")
    check(libc.mount(None, b"/", None, 0x44000, None) == 0, "private mounts")
    proc = "hidepid=" + unit.get("ProtectProc", "off")
    check(libc.mount(b"proc", b"/proc", b"proc", 0xe, proc.encode()) == 0, proc)
    if unit.get("PrivateDevices") == "yes":
        mount_devices()
    if unit["ProtectHome"] == "yes":
        for path in ("/home", "/root", "/run/user"):
            if os.path.isdir(path):
                check(libc.mount(b"tmpfs", path.encode(), b"tmpfs", 0xf, b"mode=000") == 0, path)
    for path in writable:
        check(libc.mount(path.encode(), path.encode(), None, 0x1000, None) == 0, path)
    attr = struct.pack("QQQQ", 1, 0, 0, 0)
    check(libc.syscall(442, -100, b"/", 0x8000, attr, len(attr)) == 0, "read-only mounts")
    attr = struct.pack("QQQQ", 0, 1, 0, 0)
    for path in writable + ["/proc"]:
        check(libc.syscall(442, -100, path.encode(), 0, attr, len(attr)) == 0, path)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def cgroup_files(unit):
    """Yields controller, file name of cgroup v1, and value."""
    size = unit["MemoryMax"]
    yield "memory", "memory.limit_in_bytes", str(int(size[:-1]) << "KMGT".index(size[-1]) * 10 + 10)
    yield "pids", "pids.max", unit["TasksMax"]
    if unit["DevicePolicy"] == "closed":
        yield "devices", "devices.deny", "a"
        yield "devices", "devices.allow", "c *:* m"
        yield "devices", "devices.allow", "b *:* m"
        for major, minor in DEVICES.values():
            yield "devices", "devices.allow", "c %d:%d rwm" % (major, minor)
        yield "devices", "devices.allow", "c 136:* rwm"


def remove_after(pid, groups):
    """Remove the groups after the program has ended, from a process outside of them."""
    if os.fork():
        return
    os.setsid()
    ended = os.pidfd_open(pid)
    os.closerange(0, ended)
    os.closerange(ended + 1, 1024)
    select.select([ended], [], [])
    deadline = time.monotonic() + 10
    while groups and time.monotonic() < deadline:
        for group in list(groups):
            try:
                os.rmdir(group)
                groups.remove(group)
            except OSError:
                time.sleep(0.05)
    os._exit(0)


def limit_by_cgroup(unit):
    """Apply the limits with cgroup v1's controllers; with v2 alone they are left out."""
    groups = []
    for controller, name, value in cgroup_files(unit):
        top = "/sys/fs/cgroup/" + controller
        group = "%s/confine-%d" % (top, os.getpid())
        if not os.path.exists(top + "/cgroup.procs"):
            continue
        if group not in groups:
            os.mkdir(group)
            groups.append(group)
        write(group + "/" + name, value)
    remove_after(os.getpid(), list(groups))
    for group in groups:
        write(group + "/cgroup.procs", str(os.getpid()))


def bound_capabilities(unit, without):
    known = numbers_of(CAPABILITIES, r"#define (CAP_\w+)\s+(\d+)")
    keep = {known[name] for name in unit["CapabilityBoundingSet"].split() if name != without}
    for cap in range(41):
        if cap not in keep:
            check(libc.prctl(24, cap, 0, 0, 0) == 0, "capability %d" % cap)


def main(argv):
    path, rest = argv[1], argv[2:]
    without, writable = None, []
    while rest and rest[0] != "--":
        word, value = rest.pop(0), rest.pop(0)
        if word == "--without":
            without = value
        else:
            writable.append(value)
    unit = read_unit(path)
    f = filter_of(unit)
    limit_by_cgroup(unit)
    mount_all(unit, writable)
    if unit["PrivateNetwork"] == "yes":
        check(libc.unshare(0x40000000) == 0, "network namespace")
    bound_capabilities(unit, without)
    assert unit["NoNewPrivileges"] == "yes"
    check(libc.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs")
    f.install()
    os.execv(rest[1], rest[1:])


main(sys.argv)

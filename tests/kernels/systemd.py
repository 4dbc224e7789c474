#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Debian package under a real systemd, in QEMU: systemd.py DEB SUITE

The package is installed in a clean root directory of the release (roots.sh), with a Python and
unit.py, which becomes the file system of a virtual machine with the kernel of that release. Exits with
77 if the root directory or the kernel cannot be had: a skipped test.
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import kernels  # noqa: E402

CHECK = """[Unit]
Requires=multi-user.target
After=multi-user.target pyprofd.socket
[Service]
Environment=LC_ALL=C.UTF-8
ExecStart=/usr/bin/python3 /tests/kernels/unit.py
"""
INSTALL = """set -eu
apt-get -q -o APT::Sandbox::User= update
apt-get -y -q -o APT::Sandbox::User= --no-install-recommends install /package.deb python3 systemd-sysv
for user in member stranger somebody; do useradd -M $user; done
usermod -aG pyprofd member
# A getty would hang up the console.
systemctl mask serial-getty@ttyS0.service
systemctl set-default check.target
apt-get clean
rm -rf /var/lib/apt/lists/* /usr/share/doc /usr/share/locale /usr/share/man /package.deb
"""
TARGET = """[Unit]
Requires=multi-user.target check.service
After=multi-user.target
AllowIsolate=yes
"""


def clean_root(suite, root):
    done = subprocess.run([kernels.TOP + "/tests/roots.sh", "clean", suite], stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    os.mkdir(root)
    subprocess.run(["tar", "-x", "-f", done.stdout.decode().strip(), "-C", root], check=True)
    for name in ("resolv.conf", "hosts"):
        shutil.copy("/etc/" + name, root + "/etc/" + name)


def install(deb, root):
    shutil.copy(deb, root + "/package.deb")
    for name, text in (("check.service", CHECK), ("check.target", TARGET)):
        with open(root + "/etc/systemd/system/" + name, "w") as file:
            file.write(text)
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc=%s/proc" % root, "chroot", root,
         "sh", "-c", INSTALL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=dict({"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
                 **{k: v for k, v in os.environ.items() if k == "http_proxy"}))
    if done.returncode:
        sys.exit("systemd: installing:\n" + done.stdout.decode())
    shutil.copytree(kernels.TOP + "/tests/kernels", root + "/tests/kernels",
                    ignore=shutil.ignore_patterns("__pycache__"))


def main(deb, suite):
    with tempfile.TemporaryDirectory() as work:
        clean_root(suite, work + "/root")
        install(deb, work + "/root")
        subprocess.run(["tar", "-c", "-f", work + "/root.tar", "-C", work + "/root", "."], check=True)
        shutil.rmtree(work + "/root")
        initrd = kernels.make_initrd(work, work + "/root.tar")
        (_, version, directory), = kernels.kernels([suite])
        print("systemd of %s: %s" % (suite, version), flush=True)
        argv = kernels.emulated(directory + "/vmlinuz", initrd, "systemd.show_status=0")
        machine = kernels.Machine("systemd", argv, 1800)
        print("    %d s" % machine.seconds)
        if not machine.passed():
            print("\n".join(machine.log[-60:]))
            return 1
    return 0


sys.exit(main(*sys.argv[1:]))

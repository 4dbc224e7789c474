#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Make the tarball for other distributions: dist.sh PROGRAMS TREE OUTPUT
#
# PROGRAMS: directory of the linked programs; TREE: what install-programs has installed. Libraries
# that the programs still load are put beside them (lib/pyprofd), where they look first, except those
# of glibc. The tarball depends on the commit and on the libraries of this machine, on nothing else: no
# names of directories, no times, no users.
set -eu

programs=$1 tree=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
libraries=$tree/lib/pyprofd
mkdir -p "$libraries" "$tree/share/systemd"

# Names of a library and its file, of all that the programs load, also indirectly. glibc comes from
# the system: it must fit the dynamic linker.
loaded() {
	ldd "$programs/pyprofd" "$programs/pyprofctl" | sed -n 's/^\t\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' |
		grep -Ev '^(libc|libm|libresolv|libpthread|libdl|librt)\.so' | LC_ALL=C sort -u
}

loaded | while read -r name file; do
	cp -L "$file" "$libraries/$name"
done
# Licences of the packages that have these files. dpkg may know a file below /usr, or without it.
loaded | while read -r _ file; do
	file=$(realpath "$file")
	echo "*${file#/usr}"
done | xargs dpkg-query -S | sed 's/:.*//' | LC_ALL=C sort -u | while read -r package; do
	cp -L "/usr/share/doc/$package/copyright" "$tree/share/doc/pyprofd/copyright.$package"
done
# Linked statically, by Debian's names
for package in libbpf-dev libelf-dev libjansson-dev libpcre2-dev libprotobuf-c-dev libncurses-dev \
	zlib1g-dev; do
	cp -L "/usr/share/doc/$package/copyright" "$tree/share/doc/pyprofd/copyright.$package"
done
cp "$here/../LICENSE" "$tree/share/doc/pyprofd/copyright"
for unit in service socket sysusers tmpfiles; do
	cp "$here/pyprofd.$unit" "$tree/share/systemd"
done
chmod -R u=rwX,go=rX "$tree"
tar --create --sort=name --format=ustar --owner=0 --group=0 --numeric-owner \
	--mtime="@$(git -C "$here" log -1 --format=%ct)" -C "$(dirname "$tree")" "$(basename "$tree")" |
	gzip -9n >"$out"

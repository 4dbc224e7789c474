#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Build the Debian packages by debhelper: deb.sh OUTPUT PAGE [ROOT]
#
# PAGE: see source.sh. ROOT: the root directory of another release, with what it takes to build; the
# build in it has no network. The packages and the sources replace what OUTPUT had.
set -eu

out=$1 page=$2 root=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
find "$out" -maxdepth 1 -type f -name 'pyprofd*' -delete
# shellcheck disable=SC2016 # for another shell
build='cd "$1" && dpkg-buildpackage -us -uc >../log 2>&1 || { tail -n 40 ../log; exit 1; }'

if [ -z "$root" ]; then
	top=$out/tree
	rm -rf "$top"
	version=$("$here/source.sh" "$top/pyprofd" "$page")
	sh -c "$build" sh "$top/pyprofd"
else
	top=$root/build/pyprofd
	rm -rf "$top"
	version=$("$here/source.sh" "$top/pyprofd" "$page")
	unshare --mount --net --pid --fork --mount-proc="$root/proc" chroot "$root" \
		env -i PATH=/usr/sbin:/usr/bin HOME=/ LC_ALL=C.UTF-8 \
		${DEB_BUILD_OPTIONS:+"DEB_BUILD_OPTIONS=$DEB_BUILD_OPTIONS"} \
		sh -c "$build" sh /build/pyprofd/pyprofd
fi
mv "$top"/pyprofd*"_$version"* "$top/log" "$out"
rm -rf "$top"
echo "$out/pyprofd_${version}_amd64.deb"

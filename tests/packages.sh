#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests of the Debian package.
#
#   packages.sh quick PAGE            the package of this machine's release, of the programs in
#                                     $PYPROF_BUILD, without compiling again: lintian, contents, units
#   packages.sh root DEB SUITE        install, use, upgrade, remove and purge this one in a clean root
#   packages.sh OUTPUT PAGE SUITE...  for each release: build in a root directory of it, lintian, then
#                                     install, use, upgrade, remove and purge in a clean one, and
#                                     container.py with it
#
# PAGE: see packaging/source.sh. Exits with 77 if a root directory cannot be had: a skipped test.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$top/tests

say() { echo "$*" >&2; }
fail() {
	say "$*"
	exit 1
}

# lint DIRECTORY: no errors, no warnings
lint() {
	lintian --allow-root --fail-on error,warning "$1"/pyprofd_*.changes || fail "lintian: $1"
}

contents='usr/bin/pyprofctl
usr/lib/systemd/system/pyprofd.service
usr/lib/systemd/system/pyprofd.socket
usr/lib/sysusers.d/pyprofd.conf
usr/lib/tmpfiles.d/pyprofd.conf
usr/sbin/pyprofd
usr/share/bash-completion/completions/pyprofctl
usr/share/doc/pyprofd/SECURITY.md
usr/share/doc/pyprofd/api.md
usr/share/doc/pyprofd/changelog
usr/share/doc/pyprofd/continuous.md
usr/share/doc/pyprofd/copyright
usr/share/doc/pyprofd/fidelity.md
usr/share/doc/pyprofd/fleet.md
usr/share/doc/pyprofd/formats.md
usr/share/doc/pyprofd/how-it-works.md
usr/share/doc/pyprofd/html-report-licences.txt
usr/share/doc/pyprofd/installing.md
usr/share/doc/pyprofd/kernels.md
usr/share/doc/pyprofd/overhead.md
usr/share/doc/pyprofd/pushing.md
usr/share/doc/pyprofd/soak.svg
usr/share/doc/pyprofd/troubleshooting.md
usr/share/fish/vendor_completions.d/pyprofctl.fish
usr/share/man/man1/pyprofctl.1
usr/share/man/man8/pyprofd.8
usr/share/zsh/vendor-completions/_pyprofctl'

# check_contents DEB: these files, all of root, none writable by others. dh_compress decides by size.
check_contents() {
	dpkg-deb -c "$1" | sed -n 's|^-\([^ ]*\) \([^ ]*\) .* \./\(.*\)|\1 \2 \3|p' >"$work/files"
	sed 's/^[^ ]* [^ ]* //; s/\.gz$//; s|^lib/|usr/lib/|' "$work/files" | LC_ALL=C sort >"$work/names"
	[ "$contents" = "$(cat "$work/names")" ] || {
		diff <(echo "$contents") "$work/names" >&2 || true
		fail 'the package has other files than expected'
	}
	if grep -Ev '^(rw-r--r--|rwxr-xr-x) root/root ' "$work/files"; then
		fail 'modes or owners'
	fi
}

# The group and the directory that the package's files describe, made in an empty root directory
check_units() {
	local root=$work/unpacked gid
	dpkg-deb -x "$1" "$root"
	mkdir -p "$root"/{etc,run}
	echo 'root:x:0:0::/:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	systemd-sysusers --root="$root" pyprofd.conf
	systemd-tmpfiles --root="$root" --create pyprofd.conf
	gid=$(sed -n 's/^pyprofd:.*:\([0-9]*\):$/\1/p' "$root/etc/group")
	[ "$(stat -c '%a %u %g' "$root/run/pyprofd")" = "750 0 $gid" ] ||
		fail "/run/pyprofd: $(stat -c '%a %u %g' "$root/run/pyprofd"), and the group is '$gid'"
	"$root/usr/sbin/pyprofd" --version
	"$root/usr/bin/pyprofctl" --version
	grep -q '^ExecStart=/usr/sbin/pyprofd --group pyprofd$' "$root"/lib/systemd/system/pyprofd.service \
		"$root"/usr/lib/systemd/system/pyprofd.service 2>/dev/null || [ $? -eq 2 ] || fail 'ExecStart'
}

# Without debugging symbols, and hardly compressed: nothing of that is checked here.
quick() {
	DEB_BUILD_OPTIONS=noautodbgsym DPKG_DEB_COMPRESSOR_LEVEL=1 PYPROF_PREBUILT=$PYPROF_BUILD "$top/packaging/deb.sh" "$work/deb" "$1"
	lint "$work/deb"
	check_contents "$work"/deb/pyprofd_*_amd64.deb
	check_units "$work"/deb/pyprofd_*_amd64.deb
}

# older DEB OUTPUT: the same package with a lower version, to upgrade from
older() {
	rm -rf "$work/older"
	dpkg-deb -R "$1" "$work/older"
	sed -i 's/^Version: .*/Version: 0.0.1/' "$work/older/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$work/older" "$2" >/dev/null
}

# What happens in the root directory, as root of it. The daemon traces nothing there.
in_root() {
	cat <<-'END'
		set -eu
		fail() { echo "$*" >&2; exit 1; }
		expect() { # STATUS COMMAND...
			want=$1 got=0
			shift
			"$@" >/out 2>&1 || got=$?
			[ $got = "$want" ] || { cat /out; fail "status $got, not $want: $*"; }
		}
		as() { user=$1; shift; setpriv --reuid "$user" --regid nogroup --init-groups -- "$@"; }
		apt() { apt-get -y -q -o APT::Sandbox::User= --no-install-recommends "$@" >/log 2>&1 || { cat /log; fail "$*"; }; }
		version() { dpkg-query -W -f '${Version} ${db:Status-Status}' pyprofd; }
		check_installed() {
			[ "$(version)" = "$1 installed" ] || fail "version: $(version)"
			[ "$(stat -c '%a %U %G' /run/pyprofd)" = '750 root pyprofd' ] || fail "$(stat /run/pyprofd)"
			[ -L /etc/systemd/system/sockets.target.wants/pyprofd.socket ] || fail 'the socket is not enabled'
			[ ! -e /etc/systemd/system/multi-user.target.wants/pyprofd.service ] || fail 'the service is enabled'
		}
		find / -xdev -name '*pyprof*' -not -path '/packages/*' -not -path '/proc/*' >/before
		apt update
		apt install /packages/older.deb
		check_installed 0.0.1
		gid=$(getent group pyprofd)

		# The group may read, others may not, and only root may end it.
		useradd -M -s /bin/sh member && usermod -aG pyprofd member && useradd -M stranger
		pyprofd --group pyprofd & daemon=$!
		for _ in $(seq 200); do pyprofctl ping >/dev/null 2>&1 && break; sleep 0.1; done
		expect 0 pyprofctl status
		expect 0 as member pyprofctl status
		expect 4 as member pyprofctl shutdown
		expect 4 as stranger pyprofctl status
		kill -0 $daemon

		# An upgrade leaves the daemon running, which has the profiles.
		apt install /packages/new.deb
		check_installed "$1"
		[ "$(getent group pyprofd)" = "${gid}member" ] || fail "the group has changed: $(getent group pyprofd)"
		kill -0 $daemon || fail 'the upgrade has ended the daemon'
		expect 0 pyprofctl shutdown
		wait $daemon

		mkdir -p /var/cache/pyprofd/x
		apt remove pyprofd
		[ -d /var/cache/pyprofd ] || fail 'removing it has deleted what it keeps'
		[ ! -e /usr/sbin/pyprofd ] || fail 'not removed'
		apt purge pyprofd
		rm -rf /run/pyprofd # as after a boot
		find / -xdev -name '*pyprof*' -not -path '/packages/*' -not -path '/proc/*' >/after
		diff /before /after || fail 'something is left'
		apt install /packages/new.deb
		check_installed "$1"
	END
}

# check_root DEB SUITE VERSION
check_root() {
	local root=$work/root
	rm -rf "$root"
	mkdir -p "$root"
	tar -x -f "$("$here/roots.sh" clean "$2")" -C "$root"
	mkdir "$root/packages"
	cp "$1" "$root/packages/new.deb"
	older "$1" "$root/packages/older.deb"
	# For apt: names of hosts, and how this machine reaches its mirror
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	in_root >"$root/packages/test.sh"
	unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" \
		env -i ${http_proxy:+"http_proxy=$http_proxy"} PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive sh /packages/test.sh "$3"
}

all() {
	local out=$1 page=$2 suite root deb version
	shift 2
	for suite; do
		say "$suite: building"
		root=$("$here/roots.sh" build "$suite")
		deb=$("$top/packaging/deb.sh" "$out/$suite" "$page" "$root")
		version=$(dpkg-deb -f "$deb" Version)
		lint "$out/$suite"
		check_contents "$deb"
		say "$suite: installing, upgrading, purging"
		check_root "$deb" "$suite" "$version"
		say "$suite: in a container"
		"$here/container.py" "$deb" "$suite"
		say "$suite: passed"
	done
}

case $1 in
quick) quick "$2" ;;
root) check_root "$2" "$3" "$(dpkg-deb -f "$2" Version)" ;;
*) all "$@" ;;
esac

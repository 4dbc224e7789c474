#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The Pythons of other Debian releases, unpacked side by side to run and trace them from there; the
# system's own packages are not changed. Uses the mirror and the keyring of this machine's apt
# configuration.
#
#   fetch-interpreters.sh [SUITE...]    default: all below; prints the launchers, one per line
#
# Each suite has its own root directory in $PYPROF_SUITES (default: pyprofd-tests in
# $XDG_CACHE_HOME), complete with its libc, so that `chroot` works as well. SUITE/pyprof/python3.X runs
# an interpreter in place. An existing suite is not fetched again. Exits with 77 if there is no apt or
# no network, which means a skipped test.
set -eu

# shellcheck source-path=SCRIPTDIR source=suites.sh
. "$(dirname "$0")/suites.sh"

# The packages to fetch from a suite, without their dependencies
packages() {
	case $1 in
	bullseye) echo python3.9 python3-gevent ;;
	bookworm) echo python3.11 libpython3.11 gunicorn python3-gevent ;;
	trixie) echo python3.13 libpython3.13 python3-gevent ;;
	sid) echo python3.13 python3.14 python3.15 libpython3.13 libpython3.14 python3-gevent ;;
	*) return 1 ;;
	esac
}

# A program that embeds the Python of a shared library, like uwsgi, mod_wsgi, PL/Python, gdb and vim.
host() {
	"${CC:-cc}" -x c -o "$1" - -ldl -DLIBRARY="\"$2\"" <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>

		int main(int argc, char **argv)
		{
			void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
			int (*run)(int, char **) = lib ? dlsym(lib, "Py_BytesMain") : NULL;

			if (run)
				return run(argc, argv);
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	END
}

fetch() {
	local suite=$1 root=$work/root python lib
	say "fetching $suite: $(packages "$suite")"
	# shellcheck disable=SC2046 # a list of names
	fill_root "$suite" "$root" $(packages "$suite")
	for python in "$root"/usr/bin/python3.*[0-9]; do
		launcher "$root" "${python##*/}"
	done
	for lib in "$root"/usr/lib/x86_64-linux-gnu/libpython3.*.so.1.0; do
		[ -e "$lib" ] || continue
		python=${lib##*/lib}
		python=${python%.so.1.0}-embedded
		host "$root/usr/bin/$python" "${lib##*/}"
		launcher "$root" "$python"
	done
	mkdir -p "$cache"
	rm -rf "${cache:?}/$suite"
	mv "$root" "$cache/$suite"
}

need_apt
lock suites
[ $# -gt 0 ] || set -- bullseye bookworm trixie sid
for suite; do
	packages "$suite" >/dev/null || {
		say "no such suite here: $suite"
		exit 2
	}
	[ -d "$cache/$suite/pyprof" ] || fetch "$suite"
	printf '%s\n' "$cache/$suite"/pyprof/python3.*
done

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The built programs have the protections that the compiler and the linker offer.
#
#   hardening.sh [BUILD]    default: $PYPROF_BUILD, or build
set -euo pipefail

build=${1:-${PYPROF_BUILD:-build}}
failed=0

lacks() {
	echo "$1: $2"
	failed=1
}

# has FILE PATTERN WHAT, reading a listing of FILE
has() { grep -Eq -- "$2" || lacks "$1" "no $3"; }

for program in "$build/pyprofd" "$build/pyprofctl"; do
	[ -e "$program" ] || {
		echo "$program is not there: build first"
		exit 2
	}
	headers=$(readelf -hldW "$program")
	symbols=$(readelf --dyn-syms -W "$program")
	has "$program" 'Type: +DYN' 'position-independent code' <<<"$headers"
	has "$program" 'GNU_RELRO' 'read-only relocations' <<<"$headers"
	has "$program" 'BIND_NOW|FLAGS.* NOW' 'immediate binding' <<<"$headers"
	has "$program" 'GNU_STACK .* RW ' 'non-executable stack' <<<"$headers"
	has "$program" ' __stack_chk_fail' 'stack protector' <<<"$symbols"
	has "$program" ' __v?snprintf_chk' 'size checks (_FORTIFY_SOURCE)' <<<"$symbols"
done

# Protections that a linked program does not show: checked per object, and by the compiler's options.
mapfile -t objects < <(find "$build"/obj/{daemon,cli,gen} -name '*.o')
while read -r object; do
	lacks "$object" 'no control-flow protection'
done < <(readelf -n "${objects[@]}" | awk '/^File: / { file = $2; all[file] }
	/x86 feature: IBT, SHSTK/ { ok[file] } END { for (f in all) if (!(f in ok)) print f }')
for object in "$build"/obj/{daemon,cli}/main.o; do
	producer=$(readelf --debug-dump=info -W "$object" | sed -n "/DW_AT_producer/p")
	has "$object" '-fstack-clash-protection' 'stack-clash protection' <<<"$producer"
done
exit $failed

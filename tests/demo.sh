#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A demonstration of pyprofd: a small web service under load is profiled from outside for a few
# seconds, and continues afterwards. Removes all its files.
set -eu

: "${PYPROF_BUILD:=build}" "${DEMO_SECONDS:=5}"
cd "$(dirname "$0")/.."
service=tests/targets/demo_service.py
tmp=$(mktemp -d)
export PYPROFD_SOCKET=$tmp/socket
pids=()

tidy() {
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$tmp"
}
trap tidy EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# wait_for SECONDS WHAT CMD...: until the command succeeds.
wait_for() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || {
			echo "$what: not within the time" >&2
			exit 1
		}
		sleep 0.1
	done
}

python=${PYTHON:-}
for p in /usr/bin/python3.11 /usr/bin/python3 "$(command -v python3 || true)"; do
	[ -n "$python" ] || [ ! -x "$p" ] || python=$p
done
[ -n "$python" ] || {
	echo 'no python3 found: install one, or name it: make demo PYTHON=...' >&2
	exit 1
}
[ "$(id -u)" = 0 ] || {
	echo 'probes need root: sudo make demo' >&2
	exit 4
}

say "1. A web service runs: $("$python" --version), no preparation"
"$python" $service serve 300 >"$tmp/port" &
service_pid=$!
pids+=("$service_pid")
wait_for 10 'the service' test -s "$tmp/port"
port=$(cat "$tmp/port")
echo "pid $service_pid, port $port; a second of load, not traced:"
"$python" $service load "$port" 1

say "2. pyprofd --pid $service_pid"
"$PYPROF_BUILD/pyprofd" --pid "$service_pid" &
pids=("$!" "$service_pid")
wait_for 20 pyprofd "$PYPROF_BUILD/pyprofctl" ping
echo "$DEMO_SECONDS seconds of load, every call traced:"
"$python" $service load "$port" "$DEMO_SECONDS"

say '3. pyprofctl snapshot: where the CPU time went'
"$PYPROF_BUILD/pyprofctl" snapshot --clock cpu -s tottime -l 15
say '   pyprofctl snapshot --clock wall: the same run, waiting included'
"$PYPROF_BUILD/pyprofctl" snapshot --clock wall -s cumulative -l 25
say '   pyprofctl status'
"$PYPROF_BUILD/pyprofctl" status

say '4. pyprofctl stop: full speed again'
"$PYPROF_BUILD/pyprofctl" stop
"$python" $service load "$port" 1
"$PYPROF_BUILD/pyprofctl" shutdown

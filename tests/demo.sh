#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A demonstration of pyprofd: a small web service under load is profiled from outside for a few
# seconds, as pyprofd does by default and then with each call traced, and continues afterwards.
# Ends with the requests per second that the service handled meanwhile. Removes all its files.
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

# rate LABEL SECONDS: requests per second of the load meanwhile; kept for the end.
rate() {
	local before after
	before=$(cat "$tmp/requests")
	sleep "$2"
	after=$(cat "$tmp/requests")
	printf '%-40s %5d requests/s\n' "$1" $(((after - before) / $2)) | tee -a "$tmp/rates"
}

is_traced() { "$PYPROF_BUILD/pyprofctl" status --json | grep -q '"state": "tracing"'; }

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

say "1. A web service runs under load: $("$python" --version), no preparation"
"$python" $service serve 600 >"$tmp/port" &
service_pid=$!
pids+=("$service_pid")
wait_for 10 'the service' test -s "$tmp/port"
"$python" $service load "$(cat "$tmp/port")" 600 "$tmp/requests" >"$tmp/load" 2>&1 &
load_pid=$!
pids+=("$load_pid") # ended after the service, which would complain otherwise
wait_for 10 'the load' test -s "$tmp/requests"
rate 'not observed' 2

say "2. pyprofd --pid $service_pid: probes take at most 10 % of its CPU time"
"$PYPROF_BUILD/pyprofd" --pid "$service_pid" &
pids=("$!" "${pids[@]}")
wait_for 60 pyprofd is_traced
rate 'observed, by default' "$DEMO_SECONDS"

say '3. pyprofctl snapshot: where the CPU time went'
"$PYPROF_BUILD/pyprofctl" snapshot --clock cpu -s tottime -l 15
say '   pyprofctl snapshot --clock wall: the same time, waiting included'
"$PYPROF_BUILD/pyprofctl" snapshot --clock wall -s cumulative -l 25
say '   pyprofctl status'
"$PYPROF_BUILD/pyprofctl" status

say "4. pyprofctl attach --exact: each call traced, without a limit, for two seconds"
"$PYPROF_BUILD/pyprofctl" detach "$service_pid"
"$PYPROF_BUILD/pyprofctl" attach --exact --yes "$service_pid"
wait_for 60 pyprofctl is_traced
rate 'each call traced (--exact)' 2

say '5. pyprofctl shutdown: full speed again'
"$PYPROF_BUILD/pyprofctl" shutdown
rate 'not observed any more' 2
kill -0 "$load_pid" 2>/dev/null || {
	cat "$tmp/load" >&2
	exit 1
}

say 'What it cost the service:'
cat "$tmp/rates"

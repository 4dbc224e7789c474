#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# One daemon and many Python processes: its CPU time and memory, every ten seconds.
#
#	tests/bench/fleet.sh IDLE BUSY SECONDS [OPTION]...
#
# Options are pyprofd's. The processes sleep, or use one or two per cent of a CPU.
set -eu
idle=$1 busy=$2 seconds=$3
shift 3
: "${PYPROF_BUILD:=build}" "${PYTHON:=python3}"
dir=$(mktemp -d)
pids=
daemon=
# shellcheck disable=SC2086,SC2064
trap 'kill $daemon $pids 2>/dev/null || :; wait; rm -rf "$dir"' EXIT

cat >"$dir/fleet_load.py" <<'EOF'
import sys
import time


def square(n):
    return sum(i * i for i in range(n))


def turn(n):
    return square(n) + len(str(n))


while True:
    if sys.argv[1] == "busy":
        turn(5000)
    time.sleep(0.05 if sys.argv[1] == "busy" else 1)
EOF

start() {
	for _ in $(seq "$2"); do
		"$PYTHON" "$dir/fleet_load.py" "$1" &
		pids="$pids $!"
	done
}

start idle "$idle"
start busy "$busy"
sleep 3
"$PYPROF_BUILD/pyprofd" --continuous --match fleet_load --socket "$dir/s" "$@" &
daemon=$!

echo "seconds,processes,waiting,intervals,cpu_percent_of_a_core,cpu_s_in_all_with_helpers,rss_kib,rate_hz"
before=0
for t in $(seq 10 10 "$seconds"); do
	sleep 10
	now=$(awk '{ print $14 + $15 }' "/proc/$daemon/stat")
	all=$(awk '{ print $14 + $15 + $16 + $17 }' "/proc/$daemon/stat")
	rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status")
	"$PYPROF_BUILD/pyprofctl" --socket "$dir/s" status --json | "$PYTHON" -c '
import json, sys
c = json.load(sys.stdin)["continuous"]
p = c["processes"]
t, cpu, all_, rss, hz = sys.argv[1:]
print(t, p["sampled"], p["waiting"], c["intervals"], int(cpu) * 10 / int(hz), int(all_) / int(hz), rss, c["rate_hz"], sep=",")
' "$t" $((now - before)) "$all" "$rss" "$(getconf CLK_TCK)"
	before=$now
done

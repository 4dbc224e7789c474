#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Make the README's pictures from a real run: the demo's web service under load, traced. Writes
# report.png (the HTML report, in a headless Chromium) and top.svg (`pyprofctl top`, in tmux).
set -eu

: "${PYPROF_BUILD:=build}" "${CHROMIUM:=/usr/bin/chromium-headless-shell}" "${PYTHON:=/usr/bin/python3}"
cd "$(dirname "$0")/../.."
doc=$PWD/packaging/doc
service=tests/targets/demo_service.py
tmp=$(mktemp -d)
export PYPROFD_SOCKET=$tmp/socket
pids=()

tidy() {
	tmux -S "$tmp/tmux" kill-server 2>/dev/null || true
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$tmp"
}
trap tidy EXIT

# wait_for CMD...: until the command succeeds, for at most 60 seconds.
wait_for() {
	local end=$((SECONDS + 60))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || {
			echo "timed out: $*" >&2
			exit 1
		}
		sleep 0.1
	done
}

has_row() { tmux -S "$tmp/tmux" capture-pane -p | grep -q 'demo_service.py:.*(is_prime)'; }

PYTHONPATH='' "$PYTHON" $service serve 300 >"$tmp/port" &
pids+=("$!")
target=$!
wait_for test -s "$tmp/port"
"$PYPROF_BUILD/pyprofd" --pid "$target" &
pids=("$!" "${pids[@]}")
wait_for "$PYPROF_BUILD/pyprofctl" ping
"$PYTHON" $service load "$(cat "$tmp/port")" 30 >"$tmp/load" 2>&1 &
pids+=("$!")

# -u: UTF-8. tmux runs the client itself, so the screen shows nothing else.
tmux -u -S "$tmp/tmux" -f /dev/null new-session -d -x 110 -y 26 "$PYPROF_BUILD/pyprofctl top"
tmux -S "$tmp/tmux" set-option -g status off
wait_for has_row
sleep 5 # a few intervals of load
tmux -S "$tmp/tmux" capture-pane -p -e -N >"$tmp/top.txt"
tmux -S "$tmp/tmux" send-keys q
"$PYTHON" packaging/doc/terminal_svg.py <"$tmp/top.txt" >"$doc/top.svg"

"$PYPROF_BUILD/pyprofctl" snapshot -o "$tmp/report.html"
"$CHROMIUM" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
	--disable-background-networking --disable-component-update --disable-sync \
	--user-data-dir="$tmp/browser" --virtual-time-budget=10000 --window-size=1280,1000 \
	--screenshot="$doc/report.png" "file://$tmp/report.html" 2>"$tmp/browser.log" || {
	cat "$tmp/browser.log" >&2
	exit 1
}
"$PYPROF_BUILD/pyprofctl" shutdown
ls -l "$doc/report.png" "$doc/top.svg"

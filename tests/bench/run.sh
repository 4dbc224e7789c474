#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `make bench`: see bench.py. Arguments: which parts of it.
set -eu
: "${PYPROF_BUILD:=build}"
export PYPROF_BUILD
cd "$(dirname "$0")/../.."
exec python3 tests/bench/bench.py "$@"

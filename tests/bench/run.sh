#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `make bench`: see bench.py. Arguments: the parts to run.
set -eu
: "${PYPROF_BUILD:=build}"
export PYPROF_BUILD
cd "$(dirname "$0")/../.."
exec python3 tests/bench/bench.py "$@"

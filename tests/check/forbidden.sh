#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Forbidden contents of the tree: calls that cannot be made safe, and paths of a developer's machine.
set -eu
cd "$(dirname "$0")/../.."

list() { git ls-files --cached --others --exclude-standard -- "$@" | grep -v '^tests/check/forbidden.sh$' || true; }
found=0

# report REASON PATTERN FILE...: extended regular expression; prints the matching lines.
report() {
	reason=$1 pattern=$2
	shift 2
	[ $# -gt 0 ] || return 0
	if grep -EHn "$pattern" "$@"; then
		echo "  ^ $reason"
		found=1
	fi
}

# Comments are not calls: remove text after // and lines that begin with *.
code() {
	reason=$1 pattern=$2
	shift 2
	[ $# -gt 0 ] || return 0
	if grep -EHn "$pattern" "$@" | grep -Ev ':[0-9]+:[[:space:]]*(/?\*|//)'; then
		echo "  ^ $reason"
		found=1
	fi
}

# shellcheck disable=SC2046 # names in this tree hold no blanks
set -- $(list '*.c' '*.h')
code 'no bound: use snprintf, memcpy with a checked length' \
	'(^|[^a-zA-Z0-9_])(strcpy|strcat|sprintf|vsprintf|gets|stpcpy)[[:space:]]*\(' "$@"
code 'no error: use parse_* of base/parse.h' \
	'(^|[^a-zA-Z0-9_])(atoi|atol|atoll|atof)[[:space:]]*\(' "$@"
code 'not reentrant: use strtok_r or strsep' '(^|[^a-zA-Z0-9_])strtok[[:space:]]*\(' "$@"
code 'variable on the stack without a bound' '(^|[^a-zA-Z0-9_])alloca[[:space:]]*\(' "$@"

# shellcheck disable=SC2046
set -- $(list '*.c' '*.h' '*.py' '*.sh' '*.md' '*.[18]' '*.service' Makefile '.ci/*' '.github/*')
home="/ho""me/[a-z]" roots="/ro""ot/" work="/wo""rk/"
report 'a path of one machine' "(^|[^a-zA-Z0-9_.})])($home|$roots|$work)" "$@"

# In shipped code, exit() outside of main() would end the daemon.
# shellcheck disable=SC2046
set -- $(list 'daemon/*.c' 'cli/*.c' | grep -v '/main\.c$')
code 'no error on overflow: use parse_* of base/parse.h' \
	'(^|[^a-zA-Z0-9_])(sscanf|fscanf)[[:space:]]*\(' "$@"
code 'runs a shell' '(^|[^a-zA-Z0-9_.>])(popen|system)[[:space:]]*\(' "$@"
code 'exit() outside main.c' '(^|[^a-zA-Z0-9_])exit[[:space:]]*\(' "$@"

# Helper processes have what base/helper.h promises only if nothing else forks.
# shellcheck disable=SC2046
set -- $(list 'daemon/*.c' 'cli/*.c' | grep -v '/base/helper_side\.c$')
code 'forks beside base/helper.c: use helper_start()' \
	'(^|[^a-zA-Z0-9_])(v?fork|clone3?)[[:space:]]*\(' "$@"

# Every source file has the licence identifier.
# shellcheck disable=SC2046
set -- $(list '*.c' '*.h' '*.py' '*.sh' Makefile)
bare=$(awk 'BEGIN { for (i = 1; i < ARGC; i++) bare[ARGV[i]] }
	/SPDX-License-Identifier/ { delete bare[FILENAME] }
	FNR == 3 { nextfile }
	END { for (name in bare) print name }' "$@")
if [ -n "$bare" ]; then
	echo "$bare"
	echo '  ^ no SPDX line'
	found=1
fi

# Wait for an event with a deadline instead.
# shellcheck disable=SC2046
set -- $(list 'tests/unit/*.c')
code 'a unit test that sleeps' '(^|[^a-zA-Z0-9_])(u|nano)?sleep[[:space:]]*\(' "$@"

exit $found

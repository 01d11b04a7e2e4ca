# SPDX-License-Identifier: MIT
# Read by the scripts of this folder; not for running.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Colour for people: on a terminal, and not where NO_COLOR asks for none.
bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$'\e[1m' plain=$'\e[0m'
fi

say() { printf '%s\n' "$bold$*$plain"; }
die() { printf '%s: %s\n' "scripts/${0##*/}" "$*" >&2; exit 1; }

# usage "$@" <<text: prints the text and ends where -h is among the arguments.
usage() {
	local text word
	text=$(cat)
	for word in "$@"; do
		case $word in -h | --help) printf '%s\n' "$text"; exit 0 ;; esac
	done
}

wrong_use() { printf 'scripts/%s: %s is not understood; -h helps\n' "${0##*/}" "'$1'" >&2; exit 2; }

# quietly LOG COMMAND...: keeps the output in a file and shows it only where the command fails.
quietly() {
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	if ! "$@" >"$log" 2>&1; then
		cat "$log" >&2
		return 1
	fi
}

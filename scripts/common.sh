# SPDX-License-Identifier: MIT
# Sourced by the scripts of this folder: their messages, their -h, and how they run commands.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Messages are bold on a terminal, unless NO_COLOR is set.
bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$'\e[1m' plain=$'\e[0m'
fi

say() { printf '%s\n' "$bold$*$plain"; }
die() { printf '%s: %s\n' "scripts/${0##*/}" "$*" >&2; exit 1; }

# usage "$@" <<text: prints the text and exits if -h or --help is among the arguments.
usage() {
	local text word
	text=$(cat)
	for word in "$@"; do
		case $word in -h | --help) printf '%s\n' "$text"; exit 0 ;; esac
	done
}

wrong_use() {
	printf "scripts/%s: unknown argument '%s'; see scripts/%s -h\n" "${0##*/}" "$1" "${0##*/}" >&2
	exit 2
}

# quietly LOG COMMAND...: writes the command's output to LOG, and shows it if the command fails.
quietly() {
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	if ! "$@" >"$log" 2>&1; then
		cat "$log" >&2
		return 1
	fi
}

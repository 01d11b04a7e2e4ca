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

# find_columns: sets columns to those of the terminal, or to 100 without one.
find_columns() {
	columns=0
	[ ! -t 1 ] || { read -r _ columns < <(stty size <&3) || true; } 3>&1
	[ "${columns:-0}" -gt 0 ] || columns=100
}

# progress TEXT...: how far a step is. A line of its own that the next one replaces on a terminal; elsewhere a
# line every 10 seconds.
progress_s=$SECONDS
progress() {
	if [ -t 1 ]; then
		find_columns
		printf '\r\e[K%.*s' "$((columns - 1))" "  $*"
	elif [ $((SECONDS - progress_s)) -ge 10 ]; then
		progress_s=$SECONDS
		printf '  %s\n' "$*"
	fi
}
end_progress() { [ ! -t 1 ] || printf '\r\e[K'; }

# follow LOG FUNCTION COMMAND...: like quietly, and calls FUNCTION with each line of the output, to show progress.
follow() {
	local log=$1 function=$2 line status=0
	shift 2
	mkdir -p "$(dirname "$log")"
	"$@" 2>&1 | while IFS= read -r line; do
		printf '%s\n' "$line" >&3
		"$function" "$line"
	done 3>"$log" || status=$?
	end_progress
	[ "$status" -eq 0 ] || cat "$log" >&2
	return "$status"
}

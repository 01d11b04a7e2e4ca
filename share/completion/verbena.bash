# SPDX-License-Identifier: MIT
# Completion of verbena(1) for bash. Commands, options and their values come from the program's help.

_verbena_commands()
{
	"${COMP_WORDS[0]}" --help 2>/dev/null | awk '/^Commands:/ { on = 1; next } !NF { on = 0 } on { print $1 }'
}

_verbena_options()
{
	# shellcheck disable=SC2086 # a command of two words
	"${COMP_WORDS[0]}" $1 --help 2>/dev/null | grep -oE '^  (-.,|   ) --[a-z-]+' | grep -oE -e '--.*'
}

# The values behind "one of:" of an option: "A, B, C", in several lines if a comma ends the line.
_verbena_choices()
{
	# shellcheck disable=SC2086 # a command of two words
	"${COMP_WORDS[0]}" $1 --help 2>/dev/null | awk -v option="$2" '
		/^  (-.,|   ) --/ { on = $1 == option || $2 == option }
		on && (list || sub(/^ *one of: /, "")) { list = /,$/; gsub(/,/, ""); print }'
}

_verbena_values()
{
	case $2 in
	--left | --right)
		_verbena_choices test --backend
		;;
	--suite)
		"${COMP_WORDS[0]}" test --list 2>/dev/null | cut -d. -f1 | sort -u
		;;
	--filter | --from)
		"${COMP_WORDS[0]}" test --list 2>/dev/null | cut -d' ' -f1
		;;
	--device | --peer-device)
		"${COMP_WORDS[0]}" devices 2>/dev/null | awk 'NR > 1 { print $1 }'
		;;
	--wire | --peer-wire)
		echo memory shared udp
		;;
	--ignore)
		echo time address number
		;;
	--check)
		echo exit-status= abort=1 bytes= order=1 file= suppressions=
		;;
	*)
		_verbena_choices "$1" "$2"
		;;
	esac
}

# The place in COMP_WORDS of the program of `run` and `explore`. bash makes three words of "--option=value".
_verbena_program()
{
	local at=2

	while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == --?* ]]; do
		if [[ ${COMP_WORDS[at + 1]} == = ]]; then
			((at += 3))
		elif [[ ${COMP_WORDS[at]} == --@(explain|report|check|all|leaks) ]]; then
			((at += 1))
		else
			((at += 2))
		fi
	done
	[[ ${COMP_WORDS[at]} == -- ]] && ((at < COMP_CWORD)) && ((at++))
	echo "$at"
}

_verbena()
{
	local kind=-d word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} values assigned=

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$(_verbena_commands) --help --version" -- "$word")
		return
	fi
	# After "--option=" the word is "=", and then "=" is the previous word.
	if [[ $word == = ]]; then
		word='' assigned=1
	elif [[ $previous == = ]]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]} assigned=1
	fi
	if [[ $command == @(run|explore) && $word != -* && -z $assigned ]]; then
		local program
		program=$(_verbena_program)
		if ((COMP_CWORD == program)); then
			mapfile -t COMPREPLY < <(compgen -c -- "$word")
			return
		elif ((COMP_CWORD > program)); then
			compopt -o filenames -o default
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
		fi
	fi
	if [[ $command == script && $word != -* && ( $previous != --* || $previous == --@(infiniband|verbose) ) ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	if [[ $command == wireshark ]]; then
		((COMP_CWORD == 2)) && mapfile -t COMPREPLY < <(compgen -W 'install uninstall --help' -- "$word")
		return
	fi
	if [[ $command == trace && ${COMP_WORDS[2]} == @(merge|annotate|to-script) ]] && ((COMP_CWORD > 2)); then
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_verbena_options "trace ${COMP_WORDS[2]}")" -- "$word")
			return
		fi
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	if [[ $command == trace && $word != -* && ( $previous != --* || $previous == --@(failed|verbs|quiet) ) ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		((COMP_CWORD == 2)) && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W 'annotate diff merge show to-script' -- "$word")
		return
	fi
	if [[ $command == trace && ${COMP_WORDS[2]} == @(show|diff) ]] && ((COMP_CWORD > 2)); then
		command="trace ${COMP_WORDS[2]}"
	fi
	case $previous in
	--folder)
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		;;
	--project | --junit | --known | --log | --svg | --html)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	--trace)
		compopt -o filenames
		[[ $command == run ]] && kind=-f
		mapfile -t COMPREPLY < <(compgen "$kind" -- "$word")
		;;
	--explain | --report)
		compopt -o filenames
		[[ -n $assigned ]] && mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	help)
		mapfile -t COMPREPLY < <(compgen -W "$(_verbena_commands)" -- "$word")
		;;
	*)
		[[ $previous == -* ]] && values=$(_verbena_values "$command" "$previous")
		mapfile -t COMPREPLY < <(compgen -W "${values:-$(_verbena_options "$command")}" -- "$word")
		;;
	esac
}

complete -F _verbena verbena

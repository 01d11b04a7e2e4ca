# SPDX-License-Identifier: MIT
# Completion of verbena(1) for bash.

_verbena_values()
{
	case $1 in
	--backend)
		echo sim ibverbs
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
	esac
}

_verbena_options()
{
	case $1 in
	devices)
		echo --backend --project --help
		;;
	test)
		echo --backend --device --peer-device --project --suite --filter --from --list --seed \
			--timeout --no-fork --trace --junit --tap --verbose --help
		;;
	esac
}

_verbena()
{
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W 'devices test help --help --version' -- "$word")
		return
	fi
	case $previous in
	--backend | --suite | --filter | --from | --device | --peer-device)
		mapfile -t COMPREPLY < <(compgen -W "$(_verbena_values "$previous")" -- "$word")
		;;
	--project | --junit)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	--trace)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		;;
	help)
		mapfile -t COMPREPLY < <(compgen -W 'devices test' -- "$word")
		;;
	*)
		mapfile -t COMPREPLY < <(compgen -W "$(_verbena_options "${COMP_WORDS[1]}")" -- \
			"$word")
		;;
	esac
}

complete -F _verbena verbena

# SPDX-License-Identifier: MIT
# Completion of verbena(1) for bash.

_verbena_values()
{
	case $1 in
	--backend | --left | --right)
		echo sim ibverbs
		;;
	--avoid)
		echo invalidate dereg rereg
		;;
	--suite)
		"${COMP_WORDS[0]}" test --list 2>/dev/null | cut -d. -f1 | sort -u
		;;
	--filter | --from)
		"${COMP_WORDS[0]}" test --list 2>/dev/null | cut -d' ' -f1
		;;
	--link-layer)
		echo ethernet infiniband
		;;
	--clock)
		echo real virtual
		;;
	--profile)
		echo spec rxe-6.1 rxe-6.12 mlx5
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
	run)
		echo --project --devices --link-layer --profile --quirks --trace --seed --clock --help
		;;
	differ)
		echo --left --right --profile --plant --seed --steps --avoid --limit --quiet --tries \
			--keep-going --print --verbose --help
		;;
	test)
		echo --backend --device --peer-device --project --profile --known --suite --filter --from --list --seed \
			--timeout --no-fork --trace --junit --tap --verbose --help
		;;
	esac
}

# The place of the program that `run` gets, in COMP_WORDS; all of run's options take a value.
_verbena_program()
{
	local at=2

	while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == --?* ]]; do
		((at += 2))
	done
	[[ ${COMP_WORDS[at]} == -- ]] && ((at < COMP_CWORD)) && ((at++))
	echo "$at"
}

_verbena()
{
	local kind=-d word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W 'devices run differ test help --help --version' -- "$word")
		return
	fi
	if [[ ${COMP_WORDS[1]} == run && $word != -* ]]; then
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
	case $previous in
	--backend | --suite | --filter | --from | --device | --peer-device | --link-layer | --clock | \
		--profile | --left | --right | --avoid)
		mapfile -t COMPREPLY < <(compgen -W "$(_verbena_values "$previous")" -- "$word")
		;;
	--project | --junit | --known)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	--trace)
		compopt -o filenames
		[[ ${COMP_WORDS[1]} == run ]] && kind=-f
		mapfile -t COMPREPLY < <(compgen "$kind" -- "$word")
		;;
	help)
		mapfile -t COMPREPLY < <(compgen -W 'devices run differ test' -- "$word")
		;;
	*)
		mapfile -t COMPREPLY < <(compgen -W "$(_verbena_options "${COMP_WORDS[1]}")" -- \
			"$word")
		;;
	esac
}

complete -F _verbena verbena

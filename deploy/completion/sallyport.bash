# SPDX-License-Identifier: Apache-2.0
# bash completion for sallyport.
#
# Commands and options come from the program's own help, so that there is no
# second list of them that could fall behind. The shell remembers each help
# that it has asked for.

declare -gA _sallyport_helps

# _sallyport_help PROGRAM WORD...: what that prints.
_sallyport_help() {
	local key="$*"

	[[ ${_sallyport_helps[$key]-} ]] ||
		_sallyport_helps[$key]=$("$@" 2>/dev/null </dev/null)
	printf '%s\n' "${_sallyport_helps[$key]}"
}

_sallyport_commands() { # PROGRAM
	_sallyport_help "$1" help |
		awk '/^[^ ]/ { on = /^commands:/ } on && /^  [a-z]/ { print $1 }'
}

# Each option of a command (of two words, some), and what the help calls its
# argument.
_sallyport_options() { # PROGRAM COMMAND
	_sallyport_help "$1" $2 --help | awk '
		/^  +-/ {
			argument = $0
			if (!sub(/^ +(-[a-z], )?--?[a-z-]+[ =]/, "", argument) ||
			    !match(argument, /^[A-Z][A-Z:]*( |$)/))
				argument = ""
			sub(/ .*/, "", argument)
			for (i = 1; i <= NF && $i ~ /^-/; i++) {
				name = $i
				sub(/,$/, "", name)
				sub(/=[A-Z]+$/, "=", name)
				print name, argument
				if ($i !~ /,$/)
					break
			}
		}'
}

_sallyport_presets() { # PROGRAM
	_sallyport_help "$1" presets | awk '{ print $1 }'
}

# Of the daemon, if there is one and it answers us.
_sallyport_sandboxes() { # PROGRAM
	"$1" status --json 2>/dev/null </dev/null |
		grep -o '"name": *"[^"]*"' | cut -d'"' -f4
}

_sallyport_sessions() {
	local dir=${XDG_STATE_HOME:-$HOME/.local/state}/sallyport

	((EUID == 0)) && dir=/var/log/sallyport
	ls "$dir" 2>/dev/null
}

# Values of an option, a line each; "/" stands for files.
_sallyport_values() { # PROGRAM OPTION ARGUMENT
	case $2:$3 in
	--allow:*) _sallyport_presets "$1" ;;
	--verdict:*) printf '%s\n' allowed refused failed observed cut event ;;
	--kind:*) printf '%s\n' dns flow http packet finding session policy ;;
	--format:*) printf '%s\n' html md json csv ;;
	--user:*) compgen -u ;;
	--env:*) compgen -e ;;
	--fs:*) printf '%s\n' host private ;;
	*:FILE | *:DIR | *:PATH | *:KEY | *:PROOF) echo / ;;
	esac
}

# What a command takes that is no option, likewise.
_sallyport_operands() { # PROGRAM COMMAND
	case $2 in
	key) printf '%s\n' new show ;;
	guard) printf '%s\n' up down status ;;
	presets) _sallyport_presets "$1" ;;
	exec | rm | status) _sallyport_sandboxes "$1" ;;
	reload) _sallyport_sandboxes "$1" && _sallyport_sessions ;;
	log | report | verify) _sallyport_sessions && echo / ;;
	policy) _sallyport_sandboxes "$1" && echo / ;;
	check | explain | diff | learn) echo / ;;
	esac
}

# Where the command that shall run in a sandbox begins, or nothing.
_sallyport_inner() {
	local i

	[[ ${COMP_WORDS[1]} == @(run|exec) ]] || return
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -- ]] && echo $((i + 1)) && return
	done
}

_sallyport() {
	local program=$1 cur=$2 prev=$3 words argument inner
	local command=${COMP_WORDS[1]}

	[[ $command == guard ]] && ((COMP_CWORD > 2)) &&
		command+=" ${COMP_WORDS[2]}"
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words=$(_sallyport_commands "$program")
	elif inner=$(_sallyport_inner) && [[ $inner ]]; then
		declare -F _command_offset >/dev/null && _command_offset "$inner"
		return
	elif [[ $cur == -* ]]; then
		words=$(_sallyport_options "$program" "$command" | cut -d' ' -f1)
	else
		argument=$(_sallyport_options "$program" "$command" |
			awk -v o="$prev" '$1 == o { print $2 }')
		if [[ $argument ]]; then
			words=$(_sallyport_values "$program" "$prev" "$argument")
		else
			words=$(_sallyport_operands "$program" "$command")
		fi
	fi
	if [[ $'\n'$words$'\n' == *$'\n/\n'* ]]; then
		words=${words/%\//}
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
	mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _sallyport sallyport

# Runs a script and reports its variables. Arguments: the script, the file for the variables, their names.
# Standard input is a pipe whose other end the delegate holds: a line asks the script's whole process group
# to end, and the end of the pipe (also the delegate's own death) kills it. The watching shell is a
# grandchild, so that a plain `wait` in the script does not wait for it.
exec 9<&0 </dev/null
( (
  trap '' TERM INT HUP
  while builtin read -r -u 9 _; do builtin kill -TERM -- "-$$"; done
  builtin kill -KILL -- "-$$"
) >/dev/null 2>&1 & )
exec 9<&-

declare -r slipway_script=$1 slipway_outputs=$2
declare -ra slipway_names=("${@:3}")
set --

slipway_report() {
  builtin local name
  {
    for name in "${slipway_names[@]}"; do
      if [[ -n ${!name+set} ]]; then builtin printf '%s\0%s\0' "$name" "${!name}"; fi
    done
  } >|"$slipway_outputs"
}

# `exit` as a function, because a trap of the script's own would replace the one below.
exit() {
  builtin local status=${1-$?}
  if [[ $BASHPID == "$$" ]]; then slipway_report; fi
  builtin exit "$status"
}
trap slipway_report EXIT

. "$slipway_script"
exit "$?"

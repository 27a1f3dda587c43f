# The persistent Bash of a code context: runs the pieces of code that come on
# descriptor 3, one after the other, in one shell, and tells on descriptor 4 what
# came of them. internal/node/contexts describes the messages.
#
# An interrupt ends what runs in the foreground by itself; the rest of the piece is
# left out by a DEBUG trap that lets nothing more begin and returns from what is
# being sourced, until the piece is left.

exec 220<&3 221>&4 3<&- 4>&-
shopt -s expand_aliases
__atoll_self=${BASH_SOURCE[0]}
__atoll_pid=$BASHPID
__atoll_generation=

__atoll_interrupt() {
  [[ -v __atoll_running ]] || return 0
  __atoll_interrupted=1
  shopt -s extdebug
  set -o functrace
  trap '[[ ${BASH_SOURCE[0]} == "$__atoll_self" ]] || __atoll_leave' DEBUG
}

# A subshell does not come back to what sources it: it would be a second one of us.
__atoll_leave() {
  [[ $BASHPID == "$__atoll_pid" ]] || exit 130
  return 2
}

# Answers for a piece, also for one that left by break or continue.
__atoll_answer() {
  local code=$1 status=ok
  [[ $BASHPID == "$__atoll_pid" ]] || exit "$code"
  [[ -v __atoll_running ]] || return 0
  unset -v __atoll_running
  ((code == 0)) || status=error
  if [[ -v __atoll_interrupted ]]; then
    unset -v __atoll_interrupted
    trap - DEBUG
    set +o functrace
    shopt -u extdebug
    status=interrupted code=130
  fi
  trap __atoll_interrupt INT
  printf '{"id":%s,"type":"done","status":"%s","exit_code":%s} \n' "$__atoll_id" "$status" "$code" >&221
}

trap __atoll_interrupt INT
printf '{"id":0,"type":"ready","version":"%s"}\n' "${BASH_VERSION%%[!0-9.]*}" >&221
while :; do
  while
    __atoll_answer 0
    IFS=' ' read -r __atoll_id __atoll_length <&220 || exit 0
  do
    LC_ALL=C IFS= read -r -N "$__atoll_length" __atoll_code <&220
    # Another number after each wake, and in each copy of a sandbox.
    if [[ -r /run/atoll/generation ]] && read -r REPLY </run/atoll/generation && [[ $REPLY != "$__atoll_generation" ]]; then
      __atoll_generation=$REPLY
      RANDOM=${SRANDOM:-$(od -An -N4 -tu4 /dev/urandom)}
    fi
    __atoll_running=1
    . /proc/self/fd/222 222<<<"$__atoll_code"
    __atoll_answer "$?" # which ends a subshell that came back
  done
done

#!/usr/bin/env bash
# Runs a command in one of two lanes, once one is free, and appends the seconds it took
# to FOLDER/alone.times. Who came first is served first: one waits for a lane, and the
# others for that one. 'go test' counts the time that a package waits for another one;
# this does not, and neither does the time limit of tests that it sets.
#
#   scripts/alone.sh FOLDER COMMAND ARGUMENT…
set -uo pipefail
folder=$1
shift
exec {queue}>"$folder/alone.queue"
flock "$queue"
for ((;;)); do
  for lane in 1 2; do
    exec {lock}>"$folder/alone.$lane"
    flock -n "$lock" && break 2
    exec {lock}>&-
  done
  sleep 0.2
done
exec {queue}>&-
SECONDS=0
status=0
"$@" -test.timeout=25m {lock}>&- || status=$? # what a test leaves running does not hold the lane
root=$(cd "$(dirname "$0")/.." && pwd)
echo "$SECONDS s ${PWD#"$root"/}" >>"$folder/alone.times"
exit "$status"

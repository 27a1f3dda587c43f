#!/usr/bin/env bash
# Runs a command and appends the seconds it took to a file. 'go test' counts the time
# that a package waits for another one; this does not.
#
#   scripts/timed.sh FILE COMMAND ARGUMENT…
set -uo pipefail
file=$1
shift
status=0
"$@" || status=$?
root=$(cd "$(dirname "$0")/.." && pwd)
echo "$SECONDS s ${PWD#"$root"/}" >>"$file"
exit "$status"

#!/usr/bin/env bash
# Fuzzes every fuzz target for FUZZ_TIME (20s). Making inputs smaller takes a minute
# each by default, in which nothing else is tried.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
  grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | awk '{ print $2 }' | while read -r target; do
    go test -run='^$' -fuzz="^$target\$" -fuzztime="${FUZZ_TIME:-20s}" -fuzzminimizetime=1s "$dir"
  done
done

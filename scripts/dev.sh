#!/usr/bin/env bash
# Runs a development server. entr rebuilds and restarts it whenever a source file changes,
# and ends when a file is added, so the loop lists the files again.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
install_packages entr
scripts/run-deps.sh
while :; do
  status=0
  git ls-files cmd internal runsc api go.mod | entr -dnr sh -c 'make --no-print-directory build && exec bin/atoll serve --dev' || status=$?
  [ "$status" = 2 ] || exit "$status" # 2: a folder has a new file
done

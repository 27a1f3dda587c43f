#!/usr/bin/env bash
# Fails when a generated file is not what the code would write now.
set -euo pipefail
cd "$(dirname "$0")/.."
before=$(git ls-files -z -- api docs sdk | xargs -0 sha256sum)
go generate ./... && go generate -C sdk/go ./...
sdk/python/tools/env python3 tools/generate.py
sdk/typescript/scripts/install.sh && npm --prefix sdk/typescript run -s generate
after=$(git ls-files -z -- api docs sdk | xargs -0 sha256sum)
if [ "$before" != "$after" ]; then
  echo "generated files were out of date; they are new now, commit them:" >&2
  diff <(echo "$before") <(echo "$after") | awk '/^>/ { print "  " $3 }' >&2
  exit 1
fi

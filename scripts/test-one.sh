#!/usr/bin/env bash
# Runs tests of one package after building the test image; the tests also use the programs in bin/.
#
#   scripts/test-one.sh PACKAGE REGEXP
set -euo pipefail
cd "$(dirname "$0")/.."
bin/atoll image build --if-changed --data-dir .cache/test-data
case $1 in
  # These test the programs in bin/, which the race detector does not see.
  ./test | ./test/*) exec go test -vet=off -count=1 -timeout 60m -v -run "$2" "$1" ;;
  ./sdk/go | ./sdk/go/*) exec go test -C sdk/go -vet=off -race -count=1 -v -run "$2" "./${1#./sdk/go}" ;;
  *) exec go test -vet=off -race -gcflags=modernc.org/{sqlite/lib,libc,memory}=-race=false -count=1 -timeout 60m -v -run "$2" "$1" ;;
esac

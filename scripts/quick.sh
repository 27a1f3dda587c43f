#!/usr/bin/env bash
# Implements 'make quick': checks the format, vets, builds and tests the packages that need no root,
# image or service, and lists the packages that it skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
SECONDS=0

unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || {
  printf 'gofmt would change these files; run gofmt -w on them:\n%s\n' "$unformatted"
  exit 1
}
go build -trimpath ./internal/... ./api/... ./bench/...
go vet -trimpath ./internal/... ./cmd/... ./api/... ./bench/... ./test/...

# Packages of the node and the guest start sandboxes, mounts and namespaces. Other packages
# whose tests need a server, an image or a database find them through atolltest.
needs='/atoll/(cmd|test|bench|internal/(node|guest|redteam|app))(/|$)'
all=$(go list ./...)
services=$(go list -test -f '{{$p := .ForTest}}{{range .Deps}}{{if eq . "github.com/atoll-run/atoll/test/atolltest"}}{{$p}}{{"\n"}}{{end}}{{end}}' ./... | sort -u | grep . || true)
quick=$(grep -vE "$needs" <<<"$all" | grep -vxF "$services"; grep -E '/test/(catalogue|prose)$' <<<"$all") # they only read files
# shellcheck disable=SC2086 # one word for each package
go test -trimpath -vet=off -ldflags=-w $quick | grep -v 'no test files'

echo "passed in $SECONDS s. Not run, because they need root, an image or a service ('make test' runs them; 'make test PKG=… RUN=…' runs one):"
comm -23 <(sort <<<"$all") <(sort <<<"$quick") | sed 's|^github.com/atoll-run/atoll|  .|' | column -c 160

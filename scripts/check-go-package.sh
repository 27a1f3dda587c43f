#!/usr/bin/env bash
# Checks the package of the client library for Go: two builds have the same bytes, and an
# empty module gets it as from any proxy and runs with it.
set -euo pipefail
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'chmod -R u+w "$made" && rm -rf "$made"' EXIT
go vet -C tools ./gomodule
go build -C tools -o "$made/gomodule" ./gomodule
for n in 1 2; do (cd tools && "$made/gomodule" "$made/$n" >/dev/null); done
diff -r "$made/1" "$made/2"
GOPROXY=$(go env GOPROXY)
export GOMODCACHE=$made/cache GOPROXY="file://$made/1,$GOPROXY" GONOSUMDB=github.com/atoll-run GOFLAGS=-mod=mod
mkdir "$made/empty"
cd "$made/empty"
cat >main.go <<'GO'
package main

import (
	"fmt"

	atoll "github.com/atoll-run/atoll/sdk/go"
)

func main() { fmt.Println(atoll.New("http://127.0.0.1:1", "key") != nil) }
GO
go mod init example.com/empty 2>/dev/null
go get github.com/atoll-run/atoll/sdk/go@latest 2>/dev/null
go run . >/dev/null && echo "the module for Go installs and runs"

#!/usr/bin/env bash
# Runs the tests that repeat things at their full counts, then executions of
# every kind for ATOLL_SOAK_FOR (an hour), and keeps what was seen.
set -euo pipefail
cd "$(dirname "$0")/.."

out="bench/results/$(date -u +%F)-soak.md"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

# begin NAME COMMAND… runs a command, keeps its verdicts, and remembers a failure.
failed=0
begin() {
	local name="$1"
	shift
	echo "soak: $name"
	local started=$SECONDS verdict=passed
	if ! "$@" >"$log" 2>&1; then
		verdict=FAILED
		failed=1
		tail -n 100 "$log"
	fi
	{
		echo
		echo "## $name: $verdict in $((SECONDS - started)) s"
		echo
		echo '```text'
		grep -aE '^ *--- (PASS|FAIL|SKIP)|^    [a-z_]+_test\.go:[0-9]+: ' "$log" | grep -vE '^ {8}' || true
		echo '```'
	} >>"$out"
}

cat >"$out" <<END
# Soak, $(date -u +%F)

$(git describe --tags --always --dirty), $(nproc) cores ($(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1)), Linux $(uname -r). \`make soak\` writes this file.
END

# What repeats anything: programs and limits, the service and its take-overs, what the
# stores record at the same time, saved homes, sandboxes that sleep, wake and are copied.
for part in ./test/e2e ./test/service ./internal/infra/store/...; do
	ATOLL_SOAK=1 begin "$part at its full counts" go test -count=1 -timeout=60m -v "$part"
done
begin "mixed executions for ${ATOLL_SOAK_FOR:-1h}" \
	go test -count=1 -timeout=130m -tags=soak -run=TestSoak -v ./bench
ATOLL_SOAK=1 begin "./internal/node/executor at its full counts" \
	go test -count=1 -timeout=60m -v ./internal/node/executor
ATOLL_SOAK=1 begin "./internal/node/sandboxes at its full counts" \
	go test -count=1 -timeout=60m -v ./internal/node/sandboxes
ATOLL_SOAK=1 begin "./internal/node/home at its full counts" \
	go test -count=1 -timeout=60m -v ./internal/node/home
ATOLL_SOAK=1 begin "./internal/edge/httpapi/docs with every operation" \
	go test -count=1 -timeout=10m -v ./internal/edge/httpapi/docs
exit "$failed"

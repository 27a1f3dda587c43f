#!/usr/bin/env bash
# What 'make test' does once everything is built: the image that tests run programs
# in, then checks, lint rules and every test with the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .cache

# Packages whose tests make sandboxes, mounts or control groups: they count what is
# left of them, and load the machine, so one of them is tested at a time. Much of
# that is waiting, in which the next one is built and the others are tested, at a
# lower priority.
alone='/atoll/(bench|test|internal/(app$|control/tools|core/storage|node/(cgroup|egress|engine|executor|idmap|netns|rootless|runtime|sandboxes|volumes|warm)))(/|$)'

# Packages whose tests make no sandbox, and wait for programs that keep time: those of
# the guest.
timed='/atoll/internal/guest(/|$)'

background=
trap 'test -z "$background" || kill -- "-$background" 2>/dev/null || true' EXIT

# beside runs a command in the background, in a process group of its own, or it would
# ignore interrupts; joined waits for it and says what it said.
beside() {
  set -m
  "$@" >.cache/beside.log 2>&1 &
  background=$!
  set +m
}
joined() {
  local status=0
  wait "$background" || status=$?
  background=
  cat .cache/beside.log
  return "$status"
}

# rest lints, and tests what may have company: first what keeps time, then the others
# at a lower priority.
rest() {
  local status=0
  # shellcheck disable=SC2046 # one word for each package
  go test -vet=off -race -timeout 30m -p 1 $(grep -E "$timed" <<<"$packages") || status=1
  renice -n 10 "$BASHPID" >/dev/null
  make --no-print-directory lint || status=1
  go test -C sdk/go -vet=off -race ./... || status=1
  # shellcheck disable=SC2046
  go test -vet=off -race -timeout 30m -p 1 $(grep -vE "$alone|$timed" <<<"$packages") || status=1
  return "$status"
}

test -e .cache/test-data/images/default/image.json || echo "building the image that tests run programs in, which takes a few minutes"
beside bin/atoll image build --if-changed --data-dir .cache/test-data
make --no-print-directory check
go build -race ./...
packages=$(go list ./...)
joined

status=0
beside rest
: >.cache/alone.times
# shellcheck disable=SC2046
go test -vet=off -race -timeout 30m -p 2 -exec "flock -o '$PWD/.cache/alone' '$PWD/scripts/timed.sh' '$PWD/.cache/alone.times'" $(grep -E "$alone" <<<"$packages") || status=1
joined || status=1
echo "the packages that were tested one at a time, without what they waited for each other:"
sort -rn .cache/alone.times
exit "$status"

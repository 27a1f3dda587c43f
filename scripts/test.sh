#!/usr/bin/env bash
# What 'make test' does once everything is built: the image that tests run programs
# in, then checks, lint rules and every test with the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .cache

# Packages whose tests make sandboxes, mounts or control groups. Each counts what is
# left of its own, but they load the machine, so one of them is tested beside the
# other packages, and two once those are done: see scripts/alone.sh. The longest come
# first, so that the last ones end together.
alone='/atoll/(bench|internal/(app$|control/tools|core/storage|node/(cgroup|egress|engine|executor|idmap|netns|rootless|runtime|sandboxes|volumes|warm)))(/|$)'
longest='/atoll/(test/(e2e|service)|internal/node/(sandboxes|executor))$'

# So are these, which test programs of bin/. The race detector, which sees nothing of
# those, is left out.
programs='/atoll/test(/|$)'

# Packages whose tests make no sandbox, and wait for programs that keep time: those of
# the guest.
timed='/atoll/internal/guest(/|$)'

# SQLite is C that was translated to Go, as its C library and its allocator are: the race
# detector looks at what uses them, and not into them, which would take more than half of
# the processor time of what does.
race=(-race -gcflags=modernc.org/{sqlite/lib,libc,memory}=-race=false)
# Debuggers' tables are left out: they take up to half of the time of a link.
plain=(-vet=off -ldflags=-w)
flags=("${plain[@]}" "${race[@]}")

declare -A background=()
trap 'for group in "${background[@]}"; do kill -- "-$group" 2>/dev/null || true; done' EXIT

# beside NAME runs a command in the background, in a process group of its own, or it
# would ignore interrupts; joined NAME waits for it and says what it said.
beside() {
  local name=$1
  shift
  set -m
  "$@" >".cache/$name.log" 2>&1 &
  background[$name]=$!
  set +m
}
joined() {
  local status=0
  wait "${background[$1]}" || status=$?
  unset "background[$1]"
  cat ".cache/$1.log"
  return "$status"
}

# failures says once more which tests failed, and which ran when a time limit was over.
failures() {
  grep -ahE -A4 '^ *--- FAIL|^FAIL\s|^panic: |^\s+Test\S+ \(|^WARNING: DATA RACE' .cache/{alone,programs,rest}.log || true
}

# lint is what looks at the sources: the rules of go vet are among those of the
# linters, but for the modules that these do not see and for generated files. It fills
# what time the tests leave.
lint() {
  renice -n 10 "$BASHPID" >/dev/null
  local status=0
  make --no-print-directory lint || status=1
  go vet -C runsc -modfile ../bin/.gvisor.mod ./... || status=1
  go test -C runsc ./patch || status=1
  go vet -C sdk/go ./... || status=1
  sdk/python/tools/env tools/check || status=1
  npm --prefix sdk/typescript run -s check || status=1
  scripts/check-go-package.sh || status=1
  return "$status"
}

# rest tests what may have company: first what keeps time, then the others at a lower
# priority. At its end it gives up its lane to the packages of alone.
rest() {
  local status=0
  # shellcheck disable=SC2046 # one word for each package
  go test "${flags[@]}" -timeout 30m -p 1 $(grep -E "$timed" <<<"$packages") || status=1
  renice -n 10 "$BASHPID" >/dev/null
  go test -C sdk/go -vet=off -race ./... || status=1
  # shellcheck disable=SC2046
  go test "${flags[@]}" -timeout 30m -p 2 $(grep -vE "$alone|$programs|$timed" <<<"$packages") || status=1
  flock -u "$lane"
  return "$status"
}

test -e .cache/test-data/images/default/image.json || echo "building the image that tests run programs in, which takes a few minutes"
beside image bin/atoll image build --if-changed --data-dir .cache/test-data
make --no-print-directory check-files
beside lint lint
packages=$(go list ./...)
# Both commands below test what is compiled here. Programs are left out, which would be linked.
# shellcheck disable=SC2046 # one word for each package
go build "${race[@]}" $(go list -f '{{if ne .Name "main"}}{{.ImportPath}}{{end}}' ./...)
joined image

status=0
exec {lane}>.cache/alone.2
flock "$lane"
beside rest rest
: >.cache/alone.times
# in_lanes tests packages one at a time, those first that take longest. The time limit includes
# the wait for a lane; scripts/alone.sh sets one that does not.
in_lanes() {
  local which=$1
  shift
  # shellcheck disable=SC2046
  go test "$@" -timeout 60m -p 2 -exec "'$PWD/scripts/alone.sh' '$PWD/.cache'" \
    $(grep -E "$which" <<<"$packages" | grep -E "$longest" | tac) $(grep -E "$which" <<<"$packages" | grep -vE "$longest")
}
beside programs in_lanes "$programs" "${plain[@]}"
in_lanes "$alone" "${flags[@]}" |& tee .cache/alone.log || status=1
joined programs || status=1
joined rest || status=1
joined lint || status=1
echo "the packages that were tested one or two at a time, without what they waited for each other:"
sort -rn .cache/alone.times
[ "$status" = 0 ] || failures
exit "$status"

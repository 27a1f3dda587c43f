#!/usr/bin/env bash
# Runs the tests of sdk/python that need no server under the Pythons of releases of Debian and
# Ubuntu, and checks its types as each Python has them. A release is unpacked into a folder of
# .cache/pythons once. What it prints at the end is what bench/results keeps.
#
#   scripts/test-pythons.sh [FOLDER [RELEASE…]]
set -euo pipefail
cd "$(dirname "$0")/.."
kept=${1:-.cache/pythons}
shift || true
[ $# != 0 ] || set -- bookworm trixie sid jammy noble
mkdir -p "$kept"
kept=$(cd "$kept" && pwd)

# The client's only package, for an interpreter of any version: it is Python alone. pip looks at
# its own version for what older ones need besides.
packages() {
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --no-input --disable-pip-version-check --no-compile \
    --only-binary=:all: --python-version "$1" --target "$2" 'httpx>=0.27,<1' typing_extensions exceptiongroup
}

# unpacked RELEASE makes the folder with Python of a release. The keys of Ubuntu's come from Debian.
unpacked() {
  local folder=$kept/$1 from=()
  case $1 in
    jammy | noble)
      unpacked trixie
      from=(http://archive.ubuntu.com/ubuntu)
      ;;
  esac
  [ ! -e "$folder/.complete" ] || return 0
  rm -rf "$folder"
  # A mirror that stands still is good enough here; packages are checked by their signatures all the same.
  mmdebstrap --quiet --variant=extract --mode=root --format=directory --include="python3,ca-certificates$([ "$1" != trixie ] || echo ,ubuntu-archive-keyring)" \
    ${from:+--keyring="$kept/trixie/usr/share/keyrings/ubuntu-archive-keyring.gpg"} \
    --aptopt='Acquire::Check-Valid-Until "false"' --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr "$1" "$folder" ${from:+"$from"}
  mkdir -p "$folder/dev" "$folder/proc" "$folder/tmp" "$folder/sdk"
  touch "$folder/.complete"
}

failed=0
report=()
for release in "$@"; do
  unpacked "$release"
  folder=$kept/$release
  version=$(chroot "$folder" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  full=$(chroot "$folder" python3 -c 'import platform; print(platform.python_version())')
  rm -rf "$folder/sdk" "$folder/packages"
  mkdir "$folder/sdk" "$folder/packages"
  packages "$version" "$folder/packages"
  cp -a sdk/python/src sdk/python/tests "$folder/sdk"
  echo "python $full of $release"
  # A namespace of mounts of its own: /dev and /proc are gone with the process.
  status=0
  said=$(unshare --mount --fork --pid sh -ec '
    mount -t proc proc "$1/proc"
    mount --bind /dev "$1/dev"
    exec env -i PATH=/usr/sbin:/usr/bin HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/sdk/src:/packages \
      chroot "$1" python3 -W error::DeprecationWarning -m unittest discover -s /sdk/tests
  ' sh "$folder" 2>&1) || status=$?
  tail -n 4 <<<"$said"
  [ "$status" = 0 ] || { failed=1; echo "$said"; }
  report+=("| $version | $full, of $release | $(grep -E '^Ran ' <<<"$said" || echo 'no test ran'): $([ "$status" = 0 ] && echo passed || echo FAILED) |")
done
for version in 3.10 3.11 3.12 3.13 3.14; do
  verdict=passed
  sdk/python/tools/env python3 -m pyright --pythonpath "$(command -v python3)" --pythonversion "$version" src >"$kept/pyright.log" 2>&1 || { verdict=FAILED; failed=1; cat "$kept/pyright.log"; }
  report+=("| $version | pyright's view of it | types: $verdict |")
done
printf '%s\n' "| Python | which | result |" "| --- | --- | --- |" "${report[@]}"
exit "$failed"

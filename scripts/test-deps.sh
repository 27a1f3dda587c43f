#!/usr/bin/env bash
# Installs what the tests need: a C compiler for the race detector, the
# interpreters that HTTP tests run, OCI runtimes, tools to build images and
# to check them with, a database server, and user mappings for the rootless
# tests, a client of HTTP, a browser, and package managers that know where this
# machine installs from.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
managers=()
# Node.js from elsewhere than Debian brings an npm that Debian's cannot join.
command -v npm >/dev/null || managers+=(npm)
python3 -c 'import pip' 2>/dev/null || managers+=(python3-pip)
install_packages "${managers[@]}" gcc libc6-dev python3-minimal nodejs bash git \
  postgresql sqlite3 crun runc erofs-utils mmdebstrap debian-archive-keyring ca-certificates curl uidmap mount iproute2 procps zstd chromium

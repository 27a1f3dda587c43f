#!/usr/bin/env bash
# Installs what building the default image needs, when there is none yet.
# Without it the server uses the host image, so nothing here is fatal.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[ -e "$ATOLL_DATA_DIR/images/default/image.json" ] && exit 0
install_packages mmdebstrap debian-archive-keyring ca-certificates || echo "the default image cannot be built without these packages" >&2

#!/usr/bin/env bash
# Installs what building the default image needs, when there is none yet.
# Without it the server uses the host image, so nothing here is fatal; with
# --required it is, because the image is what is asked for.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
if [ "${1:-}" = --required ]; then
  command -v mmdebstrap >/dev/null && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] && exit 0
  install_packages mmdebstrap debian-archive-keyring ca-certificates && exit 0
  echo "the default image is built with mmdebstrap and debian-archive-keyring: install both, then try again" >&2
  exit 1
fi
[ -e "$ATOLL_DATA_DIR/images/default/image.json" ] && exit 0
install_packages mmdebstrap debian-archive-keyring ca-certificates || echo "the default image cannot be built without these packages" >&2

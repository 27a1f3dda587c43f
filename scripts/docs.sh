#!/usr/bin/env bash
# Builds the documentation site from docs/ into the folder that the server embeds, if a page
# changed. With --optional it does nothing but say so where npm is missing: the server then
# has no /help.
set -euo pipefail
cd "$(dirname "$0")/.."
out=api/helpsite/site
sources=$(find docs site -path site/node_modules -prune -o -path site/.vitepress/cache -prune -o -type f -print | sort | xargs sha256sum | sha256sum)
[ "$(cat .cache/help.sum 2>/dev/null)" = "$sources" ] && [ -e "$out/help.zip" ] && exit
if ! command -v npm >/dev/null; then
  echo "npm is missing, so the server is built without its documentation at /help" >&2
  [ "${1:-}" = --optional ] && exit
  exit 1
fi
mkdir -p .cache
cd site
cmp -s package-lock.json node_modules/.for-lock || {
  echo "installing the site generator"
  npm ci --silent --prefer-offline --ignore-scripts
  cp package-lock.json node_modules/.for-lock
}
npx --no-install vitepress build >../.cache/help.log 2>&1 || {
  cat ../.cache/help.log >&2
  exit 1
}
cd ..
CGO_ENABLED=0 go run -trimpath ./scripts/packhelp .cache/help "$out/help.zip"
echo "$sources" >.cache/help.sum

#!/usr/bin/env bash
# Installs what the library is generated, built and tested with, or what a folder's package.json
# names, once for each package-lock.json.
set -euo pipefail
cd "$(dirname "$0")/../${1:-.}"
cmp -s package-lock.json node_modules/.for-lock && exit
npm ci --silent --prefer-offline --ignore-scripts
cp package-lock.json node_modules/.for-lock

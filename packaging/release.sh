#!/usr/bin/env bash
# Collects a release in one folder: what make package and make packages wrote, the SBOMs of
# the programs, the provenance, and checksums. The same commit gives the same bytes.
#
#   packaging/release.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
: "${VERSION:=$(cat internal/core/release/VERSION)}" "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
out=$1
mkdir -p "$out"
cp .cache/package/atoll* .cache/packages/atoll* "$out/"
tar -C .cache/packages --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -cf - go | gzip -n >"$out/atoll-$VERSION-go-module.tar.gz"
sed "s/@VERSION@/$VERSION/g; s/@ARCH@/$(go env GOARCH)/g" packaging/INSTALL.md.in >"$out/INSTALL.md"
cp LICENSE NOTICE "$out/"

# The modules of each program, as its build recorded them.
GOBIN=$PWD/.cache CGO_ENABLED=0 go install -trimpath github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
for program in atoll atoll-guest atoll-guestd atoll-redteam atoll-runsc gvisor-bin/gvisor_sentry; do
  .cache/cyclonedx-gomod bin -json -licenses -noserial -output "$out/$(basename "$program").sbom.json" "bin/$program" 2>/dev/null
  sed -i "/^    \"timestamp\":/d" "$out/$(basename "$program").sbom.json" # the time of the run
done

CGO_ENABLED=0 go run -trimpath ./packaging/provenance -version "$VERSION" -commit "$(git rev-parse HEAD)" -epoch "$SOURCE_DATE_EPOCH" "$out" >"$out/../provenance.json"
mv "$out/../provenance.json" "$out/atoll-$VERSION.provenance.json"
(cd "$out" && sha256sum -- * >SHA256SUMS)
ls -l "$out"

#!/usr/bin/env bash
# Writes the release files into a folder: a Debian package, a tarball and an OCI
# image of the server. The same binaries and SOURCE_DATE_EPOCH give the same bytes.
#
#   packaging/package.sh FOLDER
#
# VERSION is that of internal/core/release, BIN the folder of the binaries, LEVEL how
# hard to compress (1 to 9). IMAGE_DATA is a data folder that has the default image:
# it is written to a file of its own, and put into the OCI image.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
: "${VERSION:=$(cat internal/core/release/VERSION)}" "${BIN:=bin}" "${LEVEL:=6}" "${IMAGE_DATA:=}"
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
export TZ=UTC LC_ALL=C
umask 022
arch=$(go env GOARCH)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# stage installs into a folder, every file with the time of the sources.
stage() {
  make --no-print-directory -s install BIN="$BIN" DESTDIR="$1" PREFIX="$2" SYSCONFDIR="$3"
  mkdir -p "$1$2/share/bash-completion/completions" "$1$2/share/zsh/site-functions"
  "$BIN/atoll" completion bash >"$1$2/share/bash-completion/completions/atoll"
  "$BIN/atoll" completion zsh >"$1$2/share/zsh/site-functions/_atoll"
  find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# The tarball runs where it is unpacked, and can be copied over /usr/local.
name=atoll-$VERSION-linux-$arch
stage "$work/tar/$name" "" /etc
sed -i 's|^ExecStart=/bin/|ExecStart=/usr/local/bin/|' "$work/tar/$name/lib/systemd/system/atoll.service"
touch -d "@$SOURCE_DATE_EPOCH" "$work/tar/$name/lib/systemd/system/atoll.service" "$work/tar/$name/lib/systemd/system"
tar -C "$work/tar" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" | gzip -n "-$LEVEL" >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"

# A Debian version begins with a digit and orders before the release to come.
case $VERSION in
  v[0-9]*) debversion=${VERSION#v} ;;
  [0-9]*.*) debversion=$VERSION ;;
  *) debversion=0~git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M).$VERSION ;;
esac
debversion=${debversion//-/+}

if command -v dpkg-deb >/dev/null; then
  stage "$work/deb" /usr /etc
  mkdir "$work/deb/DEBIAN"
  cp packaging/debian/{conffiles,postinst,prerm,postrm} "$work/deb/DEBIAN"
  sed "s/@VERSION@/$debversion/; s/@ARCH@/$arch/; s/@SIZE@/$(du -sk --apparent-size --exclude=DEBIAN "$work/deb" | cut -f1)/" packaging/debian/control.in >"$work/deb/DEBIAN/control"
  find "$work/deb/DEBIAN" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
  touch -d "@$SOURCE_DATE_EPOCH" "$work/deb"
  dpkg-deb --root-owner-group -Zzstd "-z$((LEVEL * 2))" --build "$work/deb" "$out/atoll_${debversion}_$arch.deb" >/dev/null
  echo "$out/atoll_${debversion}_$arch.deb"
else
  echo "no .deb: dpkg-deb is not installed" >&2
fi

image=
if [ -n "$IMAGE_DATA" ]; then
  image=$out/atoll-image-default-$arch.tar.zst
  "$BIN/atoll" image export --data-dir "$IMAGE_DATA" default "$image" >/dev/null 2>&1
  echo "$image"
fi

stage "$work/oci" /usr /etc
# With the flags of 'make build' the packages that it compiled are used again.
CGO_ENABLED=0 go run -trimpath ./packaging/ociimage -root "$work/oci" -image "$image" -version "$VERSION" -arch "$arch" -level "$LEVEL" -out "$out/$name.oci.tar"
echo "$out/$name.oci.tar"

(cd "$out" && sha256sum atoll* >SHA256SUMS)

# Runs the pages below $TOP/pages, one after the other, with addresses and paths that are
# those of an installed machine and that end with this process.
set -euo pipefail
# What others have mounted by FUSE would stay in use as long as its copy here does.
awk '$3 ~ /^fuse/ { print $2 }' /proc/self/mounts | while read -r at; do umount -l "$at"; done
ip link set lo up
mkdir -p /etc/atoll /run/atoll
mount --bind "$TOP/lib" /var/lib
mount -t tmpfs tmpfs /run/atoll
mount --bind "$TOP/etc" /etc/atoll
mount --bind "$TOP/units" /etc/systemd/system
mount -t tmpfs tmpfs /usr/local/bin
mkdir -p /backups
mount -t tmpfs tmpfs /backups
ln -s "$ROOT/bin/atoll" /usr/local/bin/atoll

# await_server waits until the server is ready.
await_server() {
  for _ in $(seq 900); do
    if curl -s -o /dev/null http://127.0.0.1:8080/readyz; then return 0; fi
    sleep 0.1
  done
  echo "the server did not become ready" >&2
  return 1
}
# acme makes what pages for operators suppose: a tenant with an environment and a key.
acme() {
  atoll tenant show acme >/dev/null 2>&1 && return
  atoll tenant create acme --plan pro >/dev/null
  atoll env create acme reports >/dev/null
  atoll key create acme ci --env reports >/dev/null 2>&1
}
# end_background ends the block that a page left in the background.
end_background() {
  test -n "${background-}" || return 0
  kill -TERM -- "-$background" 2>/dev/null || true
  wait "$background" 2>/dev/null || true
  background=
}
export -f await_server acme end_background

if [ "${SERVER-}" = yes ]; then
  cp "$ROOT/deploy/systemd/atoll.service" /etc/systemd/system/
  systemctl start atoll
  await_server || { cat "$TOP/server.log"; exit 1; }
  export ATOLL_DATA_DIR=/var/lib/atoll
fi
for page in "$TOP"/pages/*; do
  if [ "${SERVER-}" = yes ]; then
    systemctl is-active --quiet atoll >/dev/null || systemctl start atoll
    await_server
    # What a page means by "your key": one of the development tenant. Commands do not see it: they
    # use the keys of the machine, as those of an operator do who has exported none.
    echo 'test -n "${ATOLL_API_KEY-}" || ATOLL_API_KEY=$(cat /var/lib/atoll/dev-key)' >"$TOP/key.sh"
    export BASH_ENV="$TOP/key.sh"
  fi
  cd "$page"
  bash "$page/.page.sh" >"$page/.output" 2>&1 </dev/null || true
done
cd /
systemctl stop atoll

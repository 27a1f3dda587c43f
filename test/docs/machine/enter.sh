# Runs page.sh on a machine of its own, as far as addresses and paths go.
set -euo pipefail
ip link set lo up
mkdir -p /var/lib/atoll /etc/atoll /backups
mount --bind "$TOP/lib" /var/lib/atoll
mount --bind "$TOP/etc" /etc/atoll
mount --bind "$TOP/backups" /backups
mount --bind "$TOP/units" /etc/systemd/system
mount -t tmpfs tmpfs /usr/local/bin

await_server() {
  for _ in $(seq 600); do
    if curl -fs -o /dev/null http://127.0.0.1:8080/readyz; then return 0; fi
    sleep 0.1
  done
  echo "the server did not become ready" >&2
  return 1
}
export -f await_server

server=
if [ "${SERVER-}" = yes ]; then
  export ATOLL_DATA_DIR="$TOP/work/data" ATOLL_ON_EXIT=destroy
  atoll serve >"$TOP/server.log" 2>&1 &
  server=$!
  await_server || { cat "$TOP/server.log"; exit 1; }
  ATOLL_API_KEY=$(cat "$ATOLL_DATA_DIR/dev-key")
  export ATOLL_API_KEY
fi
status=0
bash "$TOP/page.sh" || status=$?
systemctl stop atoll 2>/dev/null || true
if [ -n "$server" ]; then
  kill -TERM "$server" 2>/dev/null || true
  wait "$server" || true
fi
exit "$status"

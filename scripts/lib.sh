# Sourced by the other scripts: installing Debian packages.

# missing_packages prints those of its arguments that are not installed.
missing_packages() {
  local p
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || printf '%s ' "$p"
  done
}

# install_packages installs what is missing of its arguments. Where it cannot,
# it says what is missing and fails.
install_packages() {
  if ! command -v apt-get >/dev/null; then
    echo "this is not Debian or Ubuntu; these packages (or their like) are needed: $*" >&2
    return 1
  fi
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "please install: sudo apt-get install $missing" >&2
    return 1
  fi
  echo "installing $missing"
  # Lists that are missing or old make the install fail; then they are renewed.
  # shellcheck disable=SC2086 # the list is to be split
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 ||
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null; }
}

# SPDX-License-Identifier: Apache-2.0
# What the scripts share. Source it: . "$(dirname "$0")/lib.sh"

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${MUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster}
# The interpreter that Debian's torch belongs to; another python3 may stand first on PATH.
python=/usr/bin/python3

if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
heading() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# as_root COMMAND...: for root itself, or for a user with sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root or sudo for: $*"
  fi
}
can_be_root() { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }

# quietly LOG COMMAND...: shows the end of what the command said only if it failed.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    die "failed: $*   (whole output: $log)"
  fi
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages NAME...: does nothing, quickly, when all are there.
install_packages() {
  local missing=() name
  for name in "$@"; do
    installed "$name" || missing+=("$name")
  done
  [ ${#missing[@]} = 0 ] && return 0
  note "installing ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  quietly "$cache/log/apt-update.log" as_root "${apt[@]}" update
  # Tests start their own servers (etcd); Debian would start the packages' too, for good.
  local policy=/usr/sbin/policy-rc.d
  (
    if [ ! -e $policy ]; then
      trap 'as_root rm -f $policy' EXIT
      printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin $policy
    fi
    quietly "$cache/log/apt-install.log" \
      as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
  )
}

# The Debian mirror of this machine, whatever files and formats its apt sources are written in.
debian_mirror() {
  apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^Debian|Debian|//p' | head -n 1
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  # Hits in the compiler cache do not depend on where the tree lies.
  export CCACHE_BASEDIR=$top CCACHE_NOHASHDIR=1
  (
    cd "$top"
    quietly "build/$preset-configure.log" cmake --preset "$preset"
    quietly "build/$preset-build.log" cmake --build --preset "$preset" ${1:+--target "$@"}
  )
}

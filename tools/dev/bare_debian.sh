#!/usr/bin/env bash
# Whether the README's two commands work on a bare Debian: a new system in a temporary folder, into it the files that git knows, as they
# lie here, and there what a user would type. Nothing that was compiled before is taken, so it lasts; a line of minutes at the end says
# which part did.
#   tools/dev/bare_debian.sh trixie      Debian 13 (GCC 14, Catch2 3, PoCL 6.0)
#   tools/dev/bare_debian.sh bookworm    Debian 12 (GCC 12, Catch2 2, PoCL 3.1)
#   DEBIAN_MIRROR=URL tools/dev/bare_debian.sh trixie    packages from elsewhere than debootstrap takes them
# Needs root, and about 5 GB in the folder for temporary files. Installs debootstrap where it is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

suite=${1:-}
case $#:$suite in
  1:trixie | 1:bookworm) ;;
  *)
    sed -n '5,7s/^# *//p' "$0" >&2
    exit 2
    ;;
esac
if [ "$(id -u)" != 0 ]; then
  echo "bare_debian: needs root, for a system in a folder of its own" >&2
  exit 1
fi
if ! command -v debootstrap >/dev/null; then
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends debootstrap
fi

# Mounts and processes are in namespaces of their own, and end with these.
if [ -z "${BARE_DEBIAN_WORK:-}" ]; then
  BARE_DEBIAN_WORK=$(mktemp -d)
  export BARE_DEBIAN_WORK
  trap '{ kill -KILL $! && sleep 1; } 2>/dev/null; rm -rf "$BARE_DEBIAN_WORK"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  unshare --mount --pid --fork --kill-child --mount-proc tools/dev/bare_debian.sh "$suite" &
  wait $!
  exit
fi

minutes=
# part NAME COMMAND...: notes how long it takes.
part() {
  local began=$SECONDS
  printf '\n==== %s: %s\n' "$suite" "$1"
  "${@:2}" && minutes+=", $1 $(((SECONDS - began + 30) / 60))"
}
root=$BARE_DEBIAN_WORK/debian
# Nothing of this system's environment but the way to the network.
inside() {
  chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+http_proxy="$http_proxy"} \
    sh -c 'cd ~/clnet && exec "$@"' - "$@" </dev/null
}

part "system" debootstrap --variant=minbase "$suite" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t devpts devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mkdir "$root/root/clnet"
git ls-files -z | tar --null --files-from=- -c | tar -xC "$root/root/clnet"

part "training" inside sh tools/quickstart.sh train --epochs 1
part "tests" inside sh tools/quickstart.sh test
echo "$suite: minutes: ${minutes#, }"

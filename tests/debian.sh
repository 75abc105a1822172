#!/bin/sh
# debian.sh - build and test in a clean Debian, as the README says.
#
# Usage, as root: tests/debian.sh RELEASE FOLDER [TEST...]          (RELEASE: for example trixie)
#
# Makes the Debian in FOLDER with debootstrap, or uses the one that is there, and clones the last
# commit into it.  Then it runs "./bootstrap deps" and "./bootstrap check", or these tests only.
# The folder stays, but nothing stays mounted.  MW_SHARED names the folder of reference data.
set -eu

if [ $# -lt 2 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
release=$1
folder=$2
shift 2
sources=$(cd "$(dirname "$0")/.." && pwd)
inside=/root/memwall

if [ ! -e "$folder/etc/debian_version" ]; then
    debootstrap --variant=minbase --include=git,ca-certificates "$release" "$folder"
fi
folder=$(cd "$folder" && pwd)
if [ -d "$folder$inside" ]; then
    git -C "$folder$inside" fetch -q "$sources" HEAD
    git -C "$folder$inside" reset -q --hard FETCH_HEAD
else
    git clone -q "$sources" "$folder$inside"
fi
mkdir -p "$folder/root/shared"

export folder inside
shared=${MW_SHARED:-$sources/../shared}
[ ! -d "$shared" ] || export shared
# The mounts are seen by these commands only, and end with them.
# shellcheck disable=SC2016 # the inner shell expands them
exec unshare --mount sh -eu -c '
for place in dev proc sys; do
    mount --rbind "/$place" "$folder/$place"
done
[ -z "${shared:-}" ] || mount --rbind "$shared" "$folder/root/shared"
if [ -e /etc/resolv.conf ]; then
    cp /etc/resolv.conf "$folder/etc/"
fi
export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin CI=true
run() { chroot "$folder" sh -eu -c "cd $inside; $*"; }
run ./bootstrap deps
if [ $# -eq 0 ]; then
    run ./bootstrap check
else
    run ./bootstrap
    run "[ -f config.status ] || ./configure -q"
    run "make -s -j$(getconf _NPROCESSORS_ONLN) check check_PROGRAMS=\"$*\" TESTS=\"$*\""
    run "make -s summary TESTS=\"$*\""
fi' sh "$@"

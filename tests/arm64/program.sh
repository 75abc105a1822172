#!/bin/sh
# program.sh - the whole program for AArch64, on any Debian machine: compiled with
# gcc-aarch64-linux-gnu, and run by qemu-user.
#
#     tests/arm64/program.sh FOLDER
#
# FOLDER gets the libraries of that architecture, downloaded with apt and unpacked without being
# installed (200 MB), and a build of its own.  Then the models of MW_SHARED/conformance are
# compared with their logits, and the guide answers as ./memwall does.  The first run takes about
# ten minutes of processor time; a run after changes compiles these.
#
# Run it in a build folder, after make.
set -eu

[ $# -eq 1 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ -x memwall ] || { echo "program.sh: no memwall here: run make first" >&2; exit 1; }
: "${MW_SHARED:?}"
for tool in aarch64-linux-gnu-gcc qemu-aarch64 dpkg git; do
    command -v "$tool" > /dev/null || { echo "program.sh: no $tool here" >&2; exit 1; }
done
MW_SHARED=$(cd "$MW_SHARED" && pwd)
export MW_SHARED
src=$(cd "$(dirname "$0")/../.." && pwd)
here=$(pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
root=$folder/root
lib=$root/usr/lib/aarch64-linux-gnu
blas=$lib/openblas-pthread
gcc=$(aarch64-linux-gnu-gcc -dumpversion)
packages="libc6-dev linux-libc-dev libgcc-${gcc%%.*}-dev libncurses-dev libreadline-dev
libopenblas-dev libpcre2-dev libutf8proc-dev libyajl-dev libmd4c-dev libcurl4-openssl-dev
libmicrohttpd-dev liburing-dev libcmocka-dev libvterm-dev"

if [ ! -e "$root/done" ]; then
    apt=$folder/apt
    mkdir -p "$root" "$apt/lists/partial" "$apt/cache/archives/partial"
    : > "$apt/status"
    get()
    {
        apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
            -o APT::Install-Recommends=false -o Dir::State="$apt" \
            -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
            -o Dir::Cache="$apt/cache" "$@"
    }
    get update
    # shellcheck disable=SC2086
    get install -y --download-only $packages
    for package in "$apt"/cache/archives/*.deb; do
        dpkg -x "$package" "$root"
    done
    touch "$root/done"
fi

# The configuration refuses a source folder that is configured itself.
mkdir -p "$folder/build"
git -C "$src" ls-files -z > "$folder/names"
tar -c -C "$src" --null -T "$folder/names" -f "$folder/source.tar"
tar -x -f "$folder/source.tar" -C "$folder/build"
cd "$folder/build"
if [ ! -e Makefile ]; then
    ./bootstrap > /dev/null
    PKG_CONFIG_LIBDIR=$lib/pkgconfig:$blas/pkgconfig:$root/usr/share/pkgconfig \
        PKG_CONFIG_SYSROOT_DIR=$root ./configure -q --host=aarch64-linux-gnu \
        CC="aarch64-linux-gnu-gcc --sysroot=$root" \
        CPPFLAGS="-I$root/usr/include/aarch64-linux-gnu/openblas-pthread" \
        LDFLAGS="-L$blas -Wl,-rpath-link,$lib:$blas"
fi
make -s memwall tests/conformance/test_models

run()
{
    qemu-aarch64 -cpu max -L "$root" -E LD_LIBRARY_PATH="$blas:$lib" "$@"
}

run ./memwall --version
MW_SRCDIR=$folder/build MW_BUILDDIR=$folder/build run tests/conformance/test_models
for question in "Which files can memwall open?" "What does the budget count?"; do
    set -- run -m "$src/share/models/memwall-guide.gguf" -c 512 -b 80M --temp 0 --quiet "$question"
    there=$(run ./memwall "$@")
    own=$("$here/memwall" "$@")
    [ "$there" = "$own" ] ||
        { echo "program.sh: the guide answers \"$there\", not \"$own\"" >&2; exit 1; }
    echo "the guide answers the same: $there"
done

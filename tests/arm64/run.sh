#!/bin/sh
# run.sh - the tests of kernels for AArch64, on any machine: compiled with Debian's
# gcc-aarch64-linux-gnu (and libc6-dev-arm64-cross), run by qemu-user.
#
#     tests/arm64/run.sh [PART]        only tests whose names have PART, as "neondot "
#
# Run it in a build folder, after configure.  It takes some minutes of processor time, so it is
# not part of make check.  cmocka.h beside it has what these tests use of cmocka, because Debian
# installs an AArch64 library only where that architecture is enabled.
set -eu

src=$(cd "$(dirname "$0")/../.." && pwd)
cc=${CC_ARM64:-aarch64-linux-gnu-gcc}
qemu=${QEMU_ARM64:-qemu-aarch64}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

[ -f config.h ] || { echo "run.sh: no config.h here: run configure first" >&2; exit 1; }

compile() # object source flags
{
    to=$1 from=$2
    shift 2
    "$cc" -std=gnu11 -O2 -Wall -Wextra -Werror -DHAVE_CONFIG_H -I. -I"$src" \
        -I"$src/tests/arm64" "$@" -c "$src/$from" -o "$build/$to.o"
}

for part in attn delta mul_float mul_q8 rotate steps; do
    compile "neon_$part" engine/compute/set_$part.c -DSET=neon \
        -DVECTORS='"engine/compute/vec_neon.h"'
    compile "neondot_$part" engine/compute/set_$part.c -DSET=neondot \
        -DVECTORS='"engine/compute/vec_neon.h"' -march=armv8.2-a+dotprod
done
for file in compute/kernels compute/kernels_generic compute/dequant compute/grids \
    compute/kv_types compute/packed compute/interleave compute/processor compute/fetch \
    format/tensor_type; do
    compile "engine_$(basename $file)" engine/$file.c
done
compile kernel_data tests/lib/kernel_data.c
rc=0
for name in test_kernels test_interleave; do
    compile $name tests/unit/$name.c
    "$cc" -static -o "$build/$name" "$build/$name.o" "$build"/neon*.o "$build"/engine_*.o \
        "$build/kernel_data.o" -lm
    MW_ONLY=${1:-} "$qemu" "$build/$name" || rc=1
done
exit $rc

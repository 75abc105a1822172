#!/bin/sh
# run.sh - the tests of kernels for AArch64, on any machine: compiled with Debian's
# gcc-aarch64-linux-gnu (and libc6-dev-arm64-cross), run by qemu-user.
#
#     tests/arm64/run.sh [PART]        only tests whose names have PART, as "neondot "
#     tests/arm64/run.sh --count       no tests: count the instructions of products
#
# --count prints millions of instructions for a matrix of 4096 by 4096, 1 and 64 columns.  qemu
# executes one instruction at a time and logs each.  Products of 16 and of 32 rows are counted, and
# the difference, which is the work of 16 rows, is multiplied by 256.
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
    "$cc" -std=gnu17 -O2 -fno-math-errno -ffp-contract=off -Wall -Wextra -Werror \
        -DHAVE_CONFIG_H -I. -I"$src" -I"$src/tests/arm64" "$@" -c "$src/$from" -o "$build/$to.o"
}

compile_set() # name parts flags
{
    set=$1 parts=$2
    shift 2
    for part in $parts; do
        compile "${set}_$part" engine/compute/set_$part.c -DSET="$set" \
            -DVECTORS='"engine/compute/vec_neon.h"' "$@"
    done
}

compile_set neon 'attn delta mul_float mul_q8 rotate steps'
compile_set neondot 'mul_q8 steps' -DFLOAT_SET=neon -march=armv8.2-a+dotprod
compile_set neoni8mm 'mul_q8 steps' -DFLOAT_SET=neon -march=armv8.2-a+dotprod+i8mm
for file in compute/kernels compute/kernels_generic compute/dequant compute/grids \
    compute/kv_types compute/packed compute/interleave compute/processor compute/ways \
    format/tensor_type; do
    compile "engine_$(basename $file)" engine/$file.c
done

link() # program objects
{
    to=$1
    shift
    "$cc" -static -o "$build/$to" "$@" "$build"/neon*.o "$build"/engine_*.o -lm
}

one=-singlestep # its name before QEMU 8.1
"$qemu" -help | grep -q one-insn-per-tb && one=-one-insn-per-tb

instructions() # set type rows columns
{
    "$qemu" -cpu max $one -d exec,nochain "$build/count" "$@" 2>&1 | grep -c '^Trace'
}

if [ "${1:-}" = --count ]; then
    compile count tests/arm64/count.c
    link count "$build/count.o"
    for type in Q4_0 Q8_0 Q4_K Q5_K Q6_K; do
        for columns in 1 64; do
            printf '%s, %d columns:' $type $columns
            for set in neon neondot neoni8mm; do
                few=$(instructions $set $type 16 $columns)
                many=$(instructions $set $type 32 $columns)
                echo $((many - few))
            done | awk -v ORS='' '{ print " " $1 * 256 / 1e6 } END { exit NR != 3 }'
            echo
        done
    done
    exit
fi

compile kernel_data tests/lib/kernel_data.c
rc=0
for name in test_kernels test_interleave; do
    compile $name tests/unit/$name.c
    link $name "$build/$name.o" "$build/kernel_data.o"
    MW_ONLY=${1:-} "$qemu" -cpu max "$build/$name" || rc=1
done
exit $rc

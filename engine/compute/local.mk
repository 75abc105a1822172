# engine/compute: kernels, the worker pool and OpenBLAS.
libengine_a_SOURCES += \
	engine/compute/blas.c engine/compute/blas.h \
	engine/compute/dequant.c engine/compute/dequant.h \
	engine/compute/ways.c engine/compute/ways.h \
	engine/compute/grids.c engine/compute/grids.h \
	engine/compute/half.h \
	engine/compute/interleave.c engine/compute/interleave.h \
	engine/compute/kernel_sets.h \
	engine/compute/kernels.c engine/compute/kernels.h \
	engine/compute/kernels_generic.c \
	engine/compute/kv_types.c engine/compute/kv_types.h \
	engine/compute/packed.c engine/compute/packed.h \
	engine/compute/pool.c engine/compute/pool.h \
	engine/compute/processor.c engine/compute/processor.h \
	engine/compute/quantise.c engine/compute/quantise.h \
	engine/compute/quants.h

# Each instruction set is a library of its own: the same files with its name, vectors and flags.
# Several files compile at the same time.  A set with FLOAT_SET has only products of bytes.
BYTES_SET = engine/compute/kernel_set.h engine/compute/set_curves.h \
	engine/compute/set_interleaved.h engine/compute/set_mul_amx.h \
	engine/compute/set_mul_lanes.h engine/compute/set_mul_q8.c \
	engine/compute/set_mul_rows.h engine/compute/set_mul_tile.h \
	engine/compute/set_steps.c engine/compute/set_tiles.h engine/compute/set_unpack.h \
	engine/compute/set_unpack_steps.h engine/compute/set_unpack_tile.h \
	engine/compute/set_unpack_wide.h engine/compute/vec.h
KERNEL_SET = $(BYTES_SET) engine/compute/set_attn.c engine/compute/set_delta.c \
	engine/compute/set_mul_float.c engine/compute/set_mul_float.h \
	engine/compute/set_packed.h engine/compute/set_rotate.c
EXTRA_DIST += engine/compute/README.md $(KERNEL_SET) engine/compute/vec_avx2.h \
	engine/compute/vec_avx512.h \
	engine/compute/vec_neon.h engine/compute/vec_sse41.h

if CPU_X86_64
AVX2_FLAGS = -mavx2 -mfma -mf16c
AVX512_FLAGS = $(AVX2_FLAGS) -mavx512f -mavx512bw -mavx512dq -mavx512vl
noinst_LIBRARIES += libkernels_sse41.a libkernels_avx2.a libkernels_avxvnni.a \
	libkernels_avx512.a libkernels_avx512vnni.a libkernels_amx.a
KERNEL_LIBS += libkernels_sse41.a libkernels_avx2.a libkernels_avxvnni.a \
	libkernels_avx512.a libkernels_avx512vnni.a libkernels_amx.a libengine.a

# Runs of 32 bytes are passed to inlined functions only: no ABI is affected.
libkernels_sse41_a_SOURCES = $(KERNEL_SET)
libkernels_sse41_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=sse41 \
	-DVECTORS='"engine/compute/vec_sse41.h"'
libkernels_sse41_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) -mssse3 -msse4.1 -Wno-psabi
libkernels_avx2_a_SOURCES = $(KERNEL_SET)
libkernels_avx2_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=avx2 -DVECTORS='"engine/compute/vec_avx2.h"'
libkernels_avx2_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) $(AVX2_FLAGS)
libkernels_avxvnni_a_SOURCES = $(BYTES_SET)
libkernels_avxvnni_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=avxvnni -DFLOAT_SET=avx2 \
	-DVECTORS='"engine/compute/vec_avx2.h"'
libkernels_avxvnni_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) $(AVX2_FLAGS) -mavxvnni
libkernels_avx512_a_SOURCES = $(KERNEL_SET)
libkernels_avx512_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=avx512 \
	-DVECTORS='"engine/compute/vec_avx512.h"'
libkernels_avx512_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) $(AVX512_FLAGS)
libkernels_avx512vnni_a_SOURCES = $(BYTES_SET)
libkernels_avx512vnni_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=avx512vnni -DFLOAT_SET=avx512 \
	-DVECTORS='"engine/compute/vec_avx512.h"'
libkernels_avx512vnni_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) $(AVX512_FLAGS) -mavx512vnni
libkernels_amx_a_SOURCES = $(BYTES_SET)
libkernels_amx_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=amx -DFLOAT_SET=avx512 \
	-DVECTORS='"engine/compute/vec_avx512.h"'
libkernels_amx_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) $(AVX512_FLAGS) -mavx512vnni \
	-mamx-tile -mamx-int8
endif

if CPU_AARCH64
noinst_LIBRARIES += libkernels_neon.a libkernels_neondot.a libkernels_neoni8mm.a
KERNEL_LIBS += libkernels_neon.a libkernels_neondot.a libkernels_neoni8mm.a libengine.a

libkernels_neon_a_SOURCES = $(KERNEL_SET)
libkernels_neon_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=neon -DVECTORS='"engine/compute/vec_neon.h"'
libkernels_neon_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS)
libkernels_neondot_a_SOURCES = $(BYTES_SET)
libkernels_neondot_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=neondot -DFLOAT_SET=neon \
	-DVECTORS='"engine/compute/vec_neon.h"'
libkernels_neondot_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) -march=armv8.2-a+dotprod
libkernels_neoni8mm_a_SOURCES = $(BYTES_SET)
libkernels_neoni8mm_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=neoni8mm -DFLOAT_SET=neon \
	-DVECTORS='"engine/compute/vec_neon.h"'
libkernels_neoni8mm_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) -march=armv8.2-a+dotprod+i8mm
endif

# unit tests of compute
EXTRA_DIST += tests/data/quants tests/data/quants/make_blocks.py

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_blas tests/unit/test_kernels tests/unit/test_pool \
	tests/unit/test_quants tests/unit/test_rotate
tests_unit_test_blas_SOURCES = tests/unit/test_blas.c \
	tests/unit/kernel_data.c tests/unit/kernel_data.h
tests_unit_test_blas_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_blas_LDADD = $(UNIT_LIBS)

tests_unit_test_pool_SOURCES = tests/unit/test_pool.c
tests_unit_test_pool_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_pool_LDADD = $(UNIT_LIBS)

tests_unit_test_kernels_SOURCES = tests/unit/test_kernels.c \
	tests/unit/kernel_data.c tests/unit/kernel_data.h
tests_unit_test_kernels_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_kernels_LDADD = $(UNIT_LIBS)

tests_unit_test_quants_SOURCES = tests/unit/test_quants.c \
	tests/unit/kernel_data.c tests/unit/kernel_data.h
tests_unit_test_quants_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_quants_LDADD = $(UNIT_LIBS)

tests_unit_test_rotate_SOURCES = tests/unit/test_rotate.c \
	tests/unit/kernel_data.c tests/unit/kernel_data.h
tests_unit_test_rotate_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_rotate_LDADD = $(UNIT_LIBS)
endif

# Not built by default: make tests/bench/bench_kernels
EXTRA_PROGRAMS += tests/bench/bench_kernels
tests_bench_bench_kernels_SOURCES = tests/bench/bench_kernels.c \
	tests/unit/kernel_data.c tests/unit/kernel_data.h
tests_bench_bench_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS)
tests_bench_bench_kernels_LDADD = $(ENGINE_LIBS) $(OPENBLAS_LIBS)

# unit and conformance tests of kv, model and session
EXTRA_DIST += \
	tests/data/models/gemma4-tiny-q4_0.gguf tests/data/models/gemma4-tiny-q4_0.ids \
	tests/data/models/gemma4-tiny-q4_0.greedy tests/data/models/gemma4-tiny-q4_0.logits.f32 \
	tests/data/models/llama-tiny.gguf tests/data/models/llama-tiny.ids \
	tests/data/models/llama-tiny.greedy tests/data/models/llama-tiny.logits.f32

EXTRA_DIST += tests/lib/gguf_model.py
dist_check_SCRIPTS += tests/program/test_kv_rotation.py

if HAVE_CMOCKA
check_PROGRAMS += tests/conformance/test_models tests/unit/test_session
tests_conformance_test_models_SOURCES = tests/conformance/test_models.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_conformance_test_models_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_conformance_test_models_LDADD = $(UNIT_LIBS)
tests_unit_test_session_SOURCES = tests/unit/test_session.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_session_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_session_LDADD = $(UNIT_LIBS)
check_PROGRAMS += tests/unit/test_sampler
tests_unit_test_sampler_SOURCES = tests/unit/test_sampler.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_sampler_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_sampler_LDADD = $(UNIT_LIBS)
check_PROGRAMS += tests/faults/test_memory_out
tests_faults_test_memory_out_SOURCES = tests/faults/test_memory_out.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_faults_test_memory_out_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_faults_test_memory_out_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc \
	-Wl,--wrap=realloc,--wrap=mmap,--wrap=pthread_create
tests_faults_test_memory_out_LDADD = $(UNIT_LIBS)
check_PROGRAMS += tests/unit/test_same_bits
tests_unit_test_same_bits_SOURCES = tests/unit/test_same_bits.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_same_bits_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_same_bits_LDADD = $(UNIT_LIBS)
check_PROGRAMS += tests/unit/test_rewind
tests_unit_test_rewind_SOURCES = tests/unit/test_rewind.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_rewind_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_rewind_LDADD = $(UNIT_LIBS)
check_PROGRAMS += tests/unit/test_tiles
tests_unit_test_tiles_SOURCES = tests/unit/test_tiles.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_tiles_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_tiles_LDADD = $(UNIT_LIBS)
check_PROGRAMS += tests/unit/test_chat
tests_unit_test_chat_SOURCES = tests/unit/test_chat.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_chat_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_chat_LDADD = $(UNIT_LIBS)
endif

# A program that uses the public face only, and no more than 80 lines of its own.
noinst_PROGRAMS += tests/example/greedy
tests_example_greedy_SOURCES = tests/example/greedy.c
tests_example_greedy_LDADD = $(ENGINE_LIBS)

# Not built by default: make tests/bench/bench_answer
EXTRA_PROGRAMS += tests/bench/bench_answer
tests_bench_bench_answer_SOURCES = tests/bench/bench_answer.c
tests_bench_bench_answer_LDADD = $(ENGINE_LIBS)

# Not built by default: make tests/bench/bench_limits, then tests/bench/cage.py (root).
EXTRA_PROGRAMS += tests/bench/bench_limits
tests_bench_bench_limits_SOURCES = tests/bench/bench_limits.c
tests_bench_bench_limits_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/bench/cage.py

# By hand: tests/bench/kv_error.py MODEL IDS MEMWALL...
EXTRA_DIST += tests/bench/kv_error.py

# tests/fuzz: one LLVMFuzzerTestOneInput a file, with a folder of inputs beside it.
#
# To add one:
#   fuzz_programs += tests/fuzz/fuzz_gguf
#   tests_fuzz_fuzz_gguf_SOURCES = tests/fuzz/fuzz_gguf.c $(FUZZ_MAIN)
#   tests_fuzz_fuzz_gguf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
#   tests_fuzz_fuzz_gguf_LDADD = $(ENGINE_LIBS)
#   EXTRA_DIST += tests/fuzz/corpus/gguf
# In the ordinary build it is a test that replays tests/fuzz/corpus/gguf with a few
# thousand small changes; with --enable-fuzzers it is a libFuzzer program, and
#     make fuzz [RUNS=10000000] [FUZZ="gguf index_json"]
# runs one after another until one finds something.  What they learn stays in fuzz-new/.
# NAME.dict beside the target holds words of its language.
fuzz_programs =
EXTRA_DIST += tests/fuzz/replay.c

RUNS = 10000000
FUZZ = $(fuzz_programs:tests/fuzz/fuzz_%=%)

if ENABLE_FUZZERS
FUZZ_MAIN =
noinst_PROGRAMS += $(fuzz_programs)

fuzz: $(FUZZ:%=tests/fuzz/fuzz_%)
	@for name in $(FUZZ); do \
	    mkdir -p fuzz-new/$$name && \
	    echo "$$name: $(RUNS) executions" && \
	    nice ./tests/fuzz/fuzz_$$name -runs=$(RUNS) -max_len=8192 -timeout=10 \
	        -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
	        -artifact_prefix=fuzz-new/$$name- \
	        $$(ls -1 $(srcdir)/tests/fuzz/$$name.dict 2>/dev/null | sed 's/^/-dict=/') \
	        fuzz-new/$$name $(srcdir)/tests/fuzz/corpus/$$name || exit 1; \
	done
else
FUZZ_MAIN = tests/fuzz/replay.c
check_PROGRAMS += $(fuzz_programs)

fuzz:
	@echo "make fuzz: configure with CC=clang --enable-fuzzers first" >&2; exit 1
endif
.PHONY: fuzz

fuzz_programs += tests/fuzz/fuzz_telemetry
tests_fuzz_fuzz_telemetry_SOURCES = tests/fuzz/fuzz_telemetry.c $(FUZZ_MAIN)
tests_fuzz_fuzz_telemetry_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_telemetry_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/telemetry

# tests/fuzz: one LLVMFuzzerTestOneInput a file, with a folder of inputs beside it.
#
# To add one:
#   fuzz_programs += tests/fuzz/fuzz_gguf
#   tests_fuzz_fuzz_gguf_SOURCES = tests/fuzz/fuzz_gguf.c $(FUZZ_MAIN)
#   tests_fuzz_fuzz_gguf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
#   tests_fuzz_fuzz_gguf_LDADD = $(ENGINE_LIBS)
#   EXTRA_DIST += tests/fuzz/corpus/gguf
# In the ordinary build it is a test that replays tests/fuzz/corpus/gguf with a few
# thousand small changes; with --enable-fuzzers it is a libFuzzer program.
fuzz_programs =
EXTRA_DIST += tests/fuzz/replay.c

if ENABLE_FUZZERS
FUZZ_MAIN =
noinst_PROGRAMS += $(fuzz_programs)
else
FUZZ_MAIN = tests/fuzz/replay.c
check_PROGRAMS += $(fuzz_programs)
endif

fuzz_programs += tests/fuzz/fuzz_telemetry
tests_fuzz_fuzz_telemetry_SOURCES = tests/fuzz/fuzz_telemetry.c $(FUZZ_MAIN)
tests_fuzz_fuzz_telemetry_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_telemetry_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/telemetry

# Fuzz targets.  Each is a source with LLVMFuzzerTestOneInput(), a folder of inputs in
# tests/fuzz/corpus, and maybe NAME.dict with words of its language.
#
# The normal build makes each a test that replays its inputs with a few thousand small changes.
# With --enable-fuzzers it is a libFuzzer program, and
#     make fuzz [RUNS=10000000] [FUZZ="gguf index_json"]
# runs one after the other until one finds something.  New inputs are kept in fuzz-new/.
#
# To add a target: its name in this list, and a line with its LDFLAGS.
fuzz_programs = \
	tests/fuzz/fuzz_answers \
	tests/fuzz/fuzz_chatlog \
	tests/fuzz/fuzz_clean \
	tests/fuzz/fuzz_config_json \
	tests/fuzz/fuzz_dash \
	tests/fuzz/fuzz_decoder \
	tests/fuzz/fuzz_find \
	tests/fuzz/fuzz_gguf \
	tests/fuzz/fuzz_gguf_walk \
	tests/fuzz/fuzz_grammar \
	tests/fuzz/fuzz_hub_list \
	tests/fuzz/fuzz_index_json \
	tests/fuzz/fuzz_jinja \
	tests/fuzz/fuzz_kv_file \
	tests/fuzz/fuzz_limits_store \
	tests/fuzz/fuzz_markdown \
	tests/fuzz/fuzz_mutate \
	tests/fuzz/fuzz_repo \
	tests/fuzz/fuzz_request \
	tests/fuzz/fuzz_safetensors \
	tests/fuzz/fuzz_telemetry \
	tests/fuzz/fuzz_thinking \
	tests/fuzz/fuzz_tokenizer_config \
	tests/fuzz/fuzz_tokenizer_json \
	tests/fuzz/fuzz_tool_calls \
	tests/fuzz/fuzz_vocab_gguf
tests_fuzz_fuzz_answers_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_chatlog_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_clean_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_config_json_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_dash_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_decoder_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_find_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_gguf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_gguf_walk_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_grammar_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_hub_list_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_index_json_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_jinja_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_kv_file_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS) -Wl,--wrap=fstatfs
tests_fuzz_fuzz_limits_store_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_markdown_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_mutate_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS) \
	-Wl,--wrap=mw_machine_read,--wrap=program_file_bytes,--wrap=strcmp
tests_fuzz_fuzz_repo_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_request_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_safetensors_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_telemetry_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_thinking_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_tokenizer_config_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_tokenizer_json_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_tool_calls_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_vocab_gguf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

tests_fuzz_fuzz_dash_SOURCES = tests/fuzz/fuzz_dash.c \
	tests/lib/made_sample.c tests/lib/made_sample.h

tests_fuzz_fuzz_mutate_SOURCES = tests/fuzz/fuzz_mutate.c \
	tests/fuzz/fuzz_model.c tests/fuzz/fuzz_model.h

tests_fuzz_fuzz_request_SOURCES = tests/fuzz/fuzz_request.c \
	src/serve/request.c src/serve/request_anthropic.c src/serve/request_calls.c \
	src/serve/request_grammar.c \
	src/serve/request_ollama.c src/serve/request_openai.c src/serve/tool_grammar.c \
	src/serve/tool_types.c
tests_fuzz_fuzz_tool_calls_SOURCES = tests/fuzz/fuzz_tool_calls.c \
	src/serve/request.c src/serve/request_anthropic.c src/serve/request_calls.c \
	src/serve/request_grammar.c \
	src/serve/request_ollama.c src/serve/request_openai.c src/serve/tool_calls.c \
	src/serve/tool_grammar.c src/serve/tool_forms.c src/serve/tool_python.c \
	src/serve/tool_scan.c src/serve/tool_tags.c src/serve/tool_types.c

EXTRA_DIST += tests/fuzz/corpus tests/fuzz/jinja.dict tests/fuzz/thinking.dict \
	tests/fuzz/fuzz_file.h tests/fuzz/fuzz_folder.h tests/fuzz/fuzz_vocab_check.h tests/fuzz/large_blocks.c \
	tests/fuzz/replay.c

# Freed memory is used again after 1 MiB and never given back to the system, calls are named four
# deep, and the shadow of large blocks is cleared without a system call: targets run up to twice as
# often.
FUZZ_ASAN_OPTIONS = quarantine_size_mb=1:malloc_context_size=4:allocator_release_to_os_interval_ms=-1:clear_shadow_mmap_threshold=8388608

RUNS = 10000000
FUZZ = $(fuzz_programs:tests/fuzz/fuzz_%=%)

if ENABLE_FUZZERS
tests_libtest_a_SOURCES += tests/fuzz/large_blocks.c
noinst_PROGRAMS += $(fuzz_programs)

fuzz: $(FUZZ:%=tests/fuzz/fuzz_%)
	@for name in $(FUZZ); do \
	    mkdir -p fuzz-new/$$name && \
	    echo "$$name: $(RUNS) executions" && \
	    ASAN_OPTIONS="$(FUZZ_ASAN_OPTIONS):$$ASAN_OPTIONS" nice ./tests/fuzz/fuzz_$$name -runs=$(RUNS) -max_len=8192 -timeout=10 \
	        -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
	        -artifact_prefix=fuzz-new/$$name- \
	        $$(ls -1 $(srcdir)/tests/fuzz/$$name.dict 2>/dev/null | sed 's/^/-dict=/') \
	        fuzz-new/$$name $(srcdir)/tests/fuzz/corpus/$$name || exit 1; \
	done
else
tests_libtest_a_SOURCES += tests/fuzz/replay.c # main() of the fuzz targets
check_PROGRAMS += $(fuzz_programs)

fuzz:
	@echo "make fuzz: configure with CC=clang --enable-fuzzers first" >&2; exit 1
endif
.PHONY: fuzz

# Measurements, run by hand.  Only bench_tokenize is built by default; for the others:
# make tests/bench/bench_kernels
noinst_PROGRAMS += tests/bench/bench_tokenize
tests_bench_bench_tokenize_LDADD = $(ENGINE_LIBS)

EXTRA_PROGRAMS += \
	tests/bench/bench_answer \
	tests/bench/bench_attend \
	tests/bench/bench_context \
	tests/bench/bench_grammar \
	tests/bench/bench_index \
	tests/bench/bench_instructions \
	tests/bench/bench_kernels \
	tests/bench/bench_limits \
	tests/bench/bench_pass \
	tests/bench/bench_predict \
	tests/bench/bench_resume \
	tests/bench/bench_stream \
	tests/bench/bench_streamed \
	tests/bench/bench_throttled \
	tests/bench/expert_sim \
	tests/bench/known_tensors
tests_bench_bench_answer_LDADD = $(ENGINE_LIBS)
tests_bench_bench_attend_SOURCES = tests/bench/bench_attend.c \
	tests/lib/kernel_data.c tests/lib/kernel_data.h
tests_bench_bench_attend_LDADD = $(ENGINE_LIBS)
tests_bench_bench_context_LDADD = $(ENGINE_LIBS)
tests_bench_bench_grammar_LDADD = $(ENGINE_LIBS)
tests_bench_bench_index_SOURCES = tests/bench/bench_index.c \
	tests/lib/kernel_data.c tests/lib/kernel_data.h
tests_bench_bench_index_LDADD = $(ENGINE_LIBS)
tests_bench_bench_instructions_LDADD = $(ENGINE_LIBS)
tests_bench_bench_kernels_SOURCES = tests/bench/bench_kernels.c \
	tests/lib/kernel_data.c tests/lib/kernel_data.h
tests_bench_bench_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS)
tests_bench_bench_kernels_LDADD = $(ENGINE_LIBS) $(OPENBLAS_LIBS)
tests_bench_bench_limits_LDADD = $(ENGINE_LIBS)
tests_bench_bench_pass_LDADD = $(ENGINE_LIBS)
tests_bench_bench_predict_LDADD = $(ENGINE_LIBS)
tests_bench_bench_resume_LDADD = $(ENGINE_LIBS)
tests_bench_bench_stream_LDADD = $(ENGINE_LIBS)
tests_bench_bench_streamed_LDADD = $(ENGINE_LIBS)
tests_bench_bench_throttled_SOURCES = tests/bench/bench_throttled.c \
	tests/lib/kernel_data.c tests/lib/kernel_data.h
tests_bench_bench_throttled_LDADD = $(ENGINE_LIBS)
tests_bench_expert_sim_LDADD = $(ENGINE_LIBS)
tests_bench_known_tensors_LDADD = $(ENGINE_LIBS)

# cage.py (root) runs bench_limits.  kv_error.py MODEL IDS MEMWALL..., screen.py MEMWALL MODEL
# guide_quality.py F32.gguf: the guide with other weight types and KV types.
# speed_table.py BUILD RESULTS.json MODEL...: prompts and answers beside limits and llama.cpp.
# bench_streamed MODEL MIB...: streaming answers beside the limits of disk and memory.
# bench_predict [--busy] MODEL...: predictions before and after the first answer.
# bench_context MODEL MIB TOKENS FOLDER: tokens after a context that is on the disk.
# bench_resume MODEL MIB FOLDER TOKENS...: reading a KV file beside evaluating, both predicted.
# bench_grammar VOCABULARY: the mask of a grammar for one token.
# bench_index: the choice of positions by index keys, 4k to 256k of them.
# bench_attend: attention over long contexts; bench_pass MODEL...: several columns over one.
# bench_throttled: products while one of the threads is slow.
# drafts.py, drafts_peer.py: what drafts cost and gain, alone and beside llama.cpp.
# instructions.py BENCH_INSTRUCTIONS SET: instructions and cycles for 512 weights.
# token_profile.py MEMWALL MODEL...: where the time of a token goes (perf).
# drafts_cage.py MEMWALL MODEL (root): a chat in a cage closes its drafter and opens it again.
# waves.py MEMWALL MODEL (root): a budget of auto beside a program that takes memory in waves.
# family_row.py BUILD NAME (root): a published model at its full size in a cage, a line of a table;
# known_tensors has the tensors of its file.
# experts_table.py (root): a mixture of experts in cages; expert_sim RECORDING... its recordings.
EXTRA_DIST += tests/bench/README.md tests/bench/cage.py tests/bench/experts_table.py \
	tests/bench/filled.h \
	tests/bench/guide_quality.py tests/bench/kv_error.py \
	tests/bench/drafts.py tests/bench/drafts_cage.py tests/bench/drafts_peer.py \
	tests/bench/family_row.py \
	tests/bench/instructions.py \
	tests/bench/list_many.py tests/bench/mirror.py \
	tests/bench/predictions.py tests/bench/ram_table.py tests/bench/resume.py \
	tests/bench/serve_load.py tests/bench/serve_overhead.py \
	tests/bench/screen.py tests/bench/speed_table.py tests/bench/synth_families.py \
	tests/bench/token_profile.py tests/bench/turns.h tests/bench/waves.py

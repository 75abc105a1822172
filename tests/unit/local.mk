# Tests of modules, and the tests that compare whole models with reference results.
if HAVE_CMOCKA
check_PROGRAMS += \
	tests/conformance/test_models \
	tests/unit/test_anchor \
	tests/unit/test_arrange \
	tests/unit/test_attend \
	tests/unit/test_base \
	tests/unit/test_beginning \
	tests/unit/test_blas \
	tests/unit/test_bpe \
	tests/unit/test_breath \
	tests/unit/test_breathing \
	tests/unit/test_cache_layout \
	tests/unit/test_cage \
	tests/unit/test_canvas \
	tests/unit/test_catalogue \
	tests/unit/test_change \
	tests/unit/test_chart \
	tests/unit/test_chat \
	tests/unit/test_chat_format \
	tests/unit/test_chat_kv \
	tests/unit/test_chat_template \
	tests/unit/test_clean \
	tests/unit/test_config \
	tests/unit/test_copy \
	tests/unit/test_dash \
	tests/unit/test_dash_figures \
	tests/unit/test_diagnose \
	tests/unit/test_disturb \
	tests/unit/test_draft \
	tests/unit/test_draft_any \
	tests/unit/test_energy \
	tests/unit/test_environment \
	tests/unit/test_experts \
	tests/unit/test_explain \
	tests/unit/test_favourites \
	tests/unit/test_fetch \
	tests/unit/test_files \
	tests/unit/test_find \
	tests/unit/test_gguf \
	tests/unit/test_grammar \
	tests/unit/test_help \
	tests/unit/test_history \
	tests/unit/test_index \
	tests/unit/test_interleave \
	tests/unit/test_jinja \
	tests/unit/test_job \
	tests/unit/test_json \
	tests/unit/test_kernels \
	tests/unit/test_keys \
	tests/unit/test_kv_disk \
	tests/unit/test_kv_file \
	tests/unit/test_layout \
	tests/unit/test_limits \
	tests/unit/test_loading \
	tests/unit/test_limits_store \
	tests/unit/test_machine \
	tests/unit/test_machine_truth \
	tests/unit/test_malformed \
	tests/unit/test_mapping \
	tests/unit/test_markdown \
	tests/unit/test_mirror \
	tests/unit/test_no_memory \
	tests/unit/test_packed \
	tests/unit/test_packing \
	tests/unit/test_panels \
	tests/unit/test_plan \
	tests/unit/test_pool \
	tests/unit/test_probe \
	tests/unit/test_prompt_cost \
	tests/unit/test_proposal \
	tests/unit/test_quantise \
	tests/unit/test_quants \
	tests/unit/test_receipt \
	tests/unit/test_record \
	tests/unit/test_remote \
	tests/unit/test_repo \
	tests/unit/test_reread \
	tests/unit/test_rewind \
	tests/unit/test_rotate \
	tests/unit/test_same_bits \
	tests/unit/test_sampler \
	tests/unit/test_saved_kv \
	tests/unit/test_schedule \
	tests/unit/test_schema \
	tests/unit/test_session \
	tests/unit/test_settings \
	tests/unit/test_sides \
	tests/unit/test_snapshot \
	tests/unit/test_speed \
	tests/unit/test_stacks \
	tests/unit/test_statistics \
	tests/unit/test_store \
	tests/unit/test_store_damage \
	tests/unit/test_store_parts \
	tests/unit/test_store_rescue \
	tests/unit/test_split \
	tests/unit/test_steps \
	tests/unit/test_stream \
	tests/unit/test_summary \
	tests/unit/test_talk \
	tests/unit/test_telemetry \
	tests/unit/test_tensor_table \
	tests/unit/test_theme \
	tests/unit/test_threads \
	tests/unit/test_tiles \
	tests/unit/test_tokenizer \
	tests/unit/test_tokenizer_kept \
	tests/unit/test_tool_calls \
	tests/unit/test_transcript \
	tests/unit/test_transcript_turns \
	tests/unit/test_tried \
	tests/unit/test_verdict \
	tests/unit/test_wall \
	tests/unit/test_watch \
	tests/unit/test_ways \
	tests/unit/test_web \
	tests/unit/test_wrap

# The kernels of AMX, with its instructions in C.
if CPU_X86_64
check_PROGRAMS += tests/unit/test_amx
check_LIBRARIES += tests/libtiles.a
tests_libtiles_a_SOURCES = engine/compute/set_mul_q8.c tests/lib/vec_tiles.h
tests_libtiles_a_CPPFLAGS = $(AM_CPPFLAGS) -DSET=tiles -DVECTORS='"tests/lib/vec_tiles.h"'
tests_libtiles_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_SAN_FLAGS) $(AVX512_FLAGS) -mavx512vnni
tests_unit_test_amx_SOURCES = tests/unit/test_amx.c tests/lib/tiles.c tests/lib/tiles.h
tests_unit_test_amx_LDADD = tests/libtiles.a $(LDADD)
endif

# This one reads command lines as the program does.
tests_unit_test_settings_SOURCES = tests/unit/test_settings.c src/command_line.c

tests_unit_test_sides_SOURCES = tests/unit/test_sides.c src/measure/sides_text.c src/measure/point.c \
	src/measure/metrics.c src/base/statistics.c
tests_unit_test_statistics_SOURCES = tests/unit/test_statistics.c src/base/statistics.c

tests_unit_test_tool_calls_SOURCES = tests/unit/test_tool_calls.c \
	src/serve/request.c src/serve/request_anthropic.c src/serve/request_calls.c \
	src/serve/request_grammar.c \
	src/serve/request_ollama.c src/serve/request_openai.c src/serve/tool_calls.c \
	src/serve/tool_grammar.c src/serve/tool_forms.c src/serve/tool_python.c \
	src/serve/tool_scan.c src/serve/tool_tags.c src/serve/tool_types.c

tests_unit_test_job_SOURCES = tests/unit/test_job.c src/serve/job.c \
	src/serve/request.c src/serve/request_anthropic.c src/serve/request_calls.c \
	src/serve/request_grammar.c \
	src/serve/request_ollama.c src/serve/request_openai.c \
	src/serve/tool_grammar.c src/serve/tool_forms.c src/serve/tool_python.c \
	src/serve/tool_scan.c src/serve/tool_tags.c src/serve/tool_types.c

# This one talks to a chat without an engine.
tests_unit_test_web_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=libmicrohttpd_load
tests_unit_test_web_CPPFLAGS = $(AM_CPPFLAGS) $(LIBMICROHTTPD_CFLAGS)
tests_unit_test_web_SOURCES = tests/unit/test_web.c src/serve/web.c src/serve/access.c \
	src/serve/libmicrohttpd.c src/serve/listen.c src/serve/routes.c src/serve/reply.c \
	src/serve/reply_anthropic.c src/serve/reply_logprobs.c src/serve/reply_ollama.c \
	src/serve/reply_openai.c src/serve/job.c \
	src/serve/request.c src/serve/request_anthropic.c src/serve/request_calls.c \
	src/serve/request_grammar.c \
	src/serve/request_ollama.c src/serve/request_openai.c \
	src/serve/tool_grammar.c src/serve/tool_forms.c src/serve/tool_python.c \
	src/serve/tool_scan.c src/serve/tool_tags.c src/serve/tool_types.c

tests_unit_test_talk_SOURCES = tests/unit/test_talk.c \
	tests/lib/fake_engine.c tests/lib/fake_engine.h

# These make calls of the engine fail, or wait: the linker replaces the calls by functions of the
# test.
check_PROGRAMS += \
	tests/faults/test_chat_faults \
	tests/faults/test_draft_faults \
	tests/faults/test_kv_faults \
	tests/faults/test_kv_locks \
	tests/faults/test_memory_out \
	tests/faults/test_new_file \
	tests/faults/test_stream_faults
tests_unit_test_loading_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=madvise,--wrap=pinned_set,--wrap=pinned_place
tests_unit_test_session_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=stream_set_memory
tests_unit_test_breathing_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=stream_set_memory
tests_unit_test_change_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=forward_run
tests_unit_test_no_memory_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
tests_faults_test_memory_out_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc \
	-Wl,--wrap=realloc,--wrap=strdup,--wrap=posix_memalign,--wrap=mmap,--wrap=mprotect \
	-Wl,--wrap=pthread_create
tests_faults_test_chat_faults_SOURCES = tests/faults/test_chat_faults.c \
	tests/faults/inject.c tests/faults/inject.h
tests_faults_test_chat_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULTS_WRAP)
tests_faults_test_draft_faults_SOURCES = tests/faults/test_draft_faults.c \
	tests/faults/inject.c tests/faults/inject.h
tests_faults_test_draft_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULTS_WRAP)
tests_faults_test_kv_faults_SOURCES = tests/faults/test_kv_faults.c \
	tests/faults/inject.c tests/faults/inject.h
tests_faults_test_kv_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULTS_WRAP)
tests_faults_test_kv_locks_SOURCES = tests/faults/test_kv_locks.c \
	tests/faults/inject.c tests/faults/inject.h
tests_faults_test_kv_locks_LDFLAGS = $(AM_LDFLAGS) $(FAULTS_WRAP)
tests_faults_test_new_file_SOURCES = tests/faults/test_new_file.c \
	tests/faults/inject.c tests/faults/inject.h
tests_faults_test_new_file_LDFLAGS = $(AM_LDFLAGS) $(FAULTS_WRAP)
tests_faults_test_stream_faults_SOURCES = tests/faults/test_stream_faults.c \
	tests/faults/inject.c tests/faults/inject.h
tests_faults_test_stream_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULTS_WRAP)
FAULTS_WRAP = -Wl,--wrap=pread,--wrap=fsync,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=strdup,--wrap=free,--wrap=mmap,--wrap=mprotect,--wrap=pthread_create \
	-Wl,--wrap=flock,--wrap=geteuid
if HAVE_LIBURING
FAULTS_WRAP += -Wl,--wrap=io_uring_queue_init_params,--wrap=io_uring_register_files \
	-Wl,--wrap=io_uring_register_buffers,--wrap=io_uring_submit \
	-Wl,--wrap=io_uring_submit_and_wait,--wrap=io_uring_peek_batch_cqe
endif
endif

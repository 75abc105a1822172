# The tests.  To add one: a name in a list of tests/unit, tests/terminal or tests/fuzz, or a
# script in the list below.  The source of tests/unit/test_base is tests/unit/test_base.c;
# shared code is in tests/libtest.a.
AM_TESTS_ENVIRONMENT = LC_ALL=C.UTF-8; export LC_ALL; \
	MW_SRCDIR='$(abs_top_srcdir)'; export MW_SRCDIR; \
	MW_BUILDDIR='$(abs_top_builddir)'; export MW_BUILDDIR; \
	MW_SHARED='$(abs_top_srcdir)/../shared'; export MW_SHARED; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;
if ENABLE_SANITIZER
AM_TESTS_ENVIRONMENT += MW_SANITIZED=1; export MW_SANITIZED; \
	LSAN_OPTIONS='suppressions=$(abs_top_srcdir)/tests/leaks_of_others:print_suppressions=0'; export LSAN_OPTIONS;
endif

# The longest come first, so that no processor is idle in the end.
dist_check_SCRIPTS += \
	tests/program/test_keys.py \
	tests/program/test_doctor.py \
	tests/program/test_bench.py \
	tests/program/test_sweep.py \
	tests/program/test_run.py \
	tests/program/test_surroundings.py \
	tests/program/test_guide.py \
	tests/program/test_known.py \
	tests/program/test_guide_words.py \
	tests/program/test_demo.py \
	tests/program/test_budget.py \
	tests/program/test_chat_model.py \
	tests/conformance/test_families.py \
	tests/program/test_pull_faults.py \
	tests/program/test_continue.py \
	tests/program/test_long_text.py \
	tests/program/test_keyboard.py \
	tests/conformance/test_tokenizers.py \
	tests/program/test_one_diagnosis.py \
	tests/program/test_report.py \
	tests/program/test_pull.py \
	tests/conformance/test_chat_templates.py \
	tests/conformance/test_family_types.py \
	tests/conformance/test_dense_families.py \
	tests/conformance/test_drafts.py \
	tests/conformance/test_family_files.py \
	tests/conformance/test_inspect.py \
	tests/conformance/test_jinja.py \
	tests/conformance/test_qwen4exp.py \
	tests/conformance/test_scaled_weights.py \
	tests/conformance/test_tokenize_command.py \
	tests/conformance/test_whole_model.py \
	tests/program/test_compact.py \
	tests/program/test_empty_answer.py \
	tests/program/test_encodings.py \
	tests/program/test_eval.py \
	tests/program/test_foreign.py \
	tests/program/test_grammar.py \
	tests/program/test_kept.py \
	tests/program/test_kills.py \
	tests/program/test_kv_rotation.py \
	tests/program/test_lookalikes.py \
	tests/program/test_damaged_chats.py \
	tests/program/test_draft.py \
	tests/program/test_draft_by_head.py \
	tests/program/test_guide_drafts.py \
	tests/program/test_draft_repeat.py \
	tests/program/test_draft_heads.py \
	tests/program/test_old_vocabularies.py \
	tests/program/test_once.py \
	tests/program/test_one_plan.py \
	tests/program/test_marks.py \
	tests/program/test_mirror.py \
	tests/program/test_other_names.py \
	tests/program/test_models.py \
	tests/program/test_outputs.py \
	tests/program/test_names.py \
	tests/program/test_own_files.py \
	tests/program/test_plan_table.py \
	tests/program/test_plan_explain.py \
	tests/program/test_pull_authority.py \
	tests/program/test_pull_files.py \
	tests/program/test_pull_places.py \
	tests/program/test_pull_waits.py \
	tests/program/test_refusals.py \
	tests/program/test_resume.py \
	tests/program/test_sampling.py \
	tests/program/test_schema_random.py \
	tests/program/test_serve.py \
	tests/program/test_serve_grammar.py \
	tests/program/test_serve_hostile.py \
	tests/program/test_serve_protocols.py \
	tests/program/test_serve_screen.py \
	tests/program/test_serve_settings.py \
	tests/program/test_serve_telemetry.py \
	tests/program/test_serve_tokens.py \
	tests/program/test_serve_tools.py \
	tests/program/test_server.py \
	tests/program/test_snapshot_files.py \
	tests/program/test_stores.py \
	tests/program/test_stdin.py \
	tests/program/test_world.py \
	tests/program/test_tried.py \
	tests/program/test_family_formats.py \
	tests/program/test_vocabularies.py \
	tests/terminal/test_server.py \
	tests/terminal/test_tmux.py
# These look at the sources, where a sanitizer has nothing to do.
if !ENABLE_SANITIZER
dist_check_SCRIPTS += \
	tests/tree/test_options.py \
	tests/tree/test_package.py \
	tests/tree/test_tree.py
endif

# Programs without libraries of their own, which are the tests, link with these.  The linker
# drops those that a test does not use.
LDADD = tests/libtest.a $(UI_LIBS) $(ENGINE_LIBS) $(CMOCKA_LIBS) $(VTERM_LIBS) -lutil

check_LIBRARIES += tests/libtest.a
tests_libtest_a_SOURCES = \
	tests/lib/model_path.c tests/lib/model_path.h \
	tests/lib/tiny_vocab.c tests/lib/tiny_vocab.h
if HAVE_CMOCKA
tests_libtest_a_SOURCES += \
	tests/lib/calls.c tests/lib/calls.h \
	tests/lib/chance.h \
	tests/lib/fail_with.h \
	tests/lib/gguf_write.h \
	tests/lib/golden.c tests/lib/golden.h \
	tests/lib/hash.h \
	tests/lib/kernel_data.c tests/lib/kernel_data.h \
	tests/lib/kv_folder.c tests/lib/kv_folder.h \
	tests/lib/made_sample.c tests/lib/made_sample.h \
	tests/lib/memory_look.c tests/lib/memory_look.h \
	tests/lib/model_copy.c tests/lib/model_copy.h \
	tests/lib/plan_example.h \
	tests/lib/sim_machine.c tests/lib/sim_machine.h \
	tests/lib/random_text.h \
	tests/lib/saved_chat.c tests/lib/saved_chat.h \
	tests/lib/setting_values.c tests/lib/setting_values.h \
	tests/lib/stream_model.c tests/lib/stream_model.h \
	tests/lib/transcript_pane.c tests/lib/transcript_pane.h \
	tests/lib/tree.c tests/lib/tree.h \
	tests/lib/xml_read.c tests/lib/xml_read.h
if HAVE_VTERM
tests_libtest_a_SOURCES += \
	tests/lib/pty_screen.c tests/lib/pty_screen.h \
	tests/lib/talker.c tests/lib/talker.h \
	tests/terminal/program.c tests/terminal/program.h
endif
endif

EXTRA_DIST += \
	tests/README.md tests/leaks_of_others tests/debian.sh tests/sanitize.sh tests/skip.sh \
	tests/summary.sh \
	tests/arm64/cmocka.h tests/arm64/count.c tests/arm64/run.sh tests/arm64/program.sh \
	tests/data \
	tests/clients/clients.js tests/clients/package.json tests/clients/run.py \
	tests/lib/bench_case.py tests/lib/browser.py tests/lib/chain_head.py tests/lib/chain_model.py \
	tests/lib/chain_snapshot.py \
	tests/lib/deny.py tests/lib/gguf_edit.py tests/lib/gguf_model.py tests/lib/gguf_template.py tests/lib/guide.py \
	tests/lib/html_page.py tests/lib/hub.py tests/lib/logits.py tests/lib/model_case.py tests/lib/pull_case.py \
	tests/lib/openai_server.py tests/lib/program.py tests/lib/repeat_model.py tests/lib/same_values.py tests/lib/schema.py tests/lib/snapshot_gguf.py \
	tests/lib/server.py tests/lib/store_case.py tests/lib/terminal.py tests/lib/tiny_model.py tests/lib/world.py \
	tests/lib/tokenizer_json.py \
	tests/tree/references.py tests/tree/words.py

# Print the cases that the last "make check" skipped or failed, and the totals.
summary:
	@$(SHELL) $(top_srcdir)/tests/summary.sh $(TEST_LOGS)
.PHONY: summary

# Reference vocabularies, unpacked by tests/conformance/test_tokenizers.py.
clean-local:
	rm -rf tests/conformance/vocabularies

# Programs that scripts in tests/conformance and tests/program run.
noinst_PROGRAMS += tests/conformance/jinja_cases tests/conformance/tokenizer_vectors \
	tests/program/model_logits tests/program/schema_texts
tests_program_model_logits_LDADD = $(ENGINE_LIBS)
tests_program_schema_texts_LDADD = $(ENGINE_LIBS)
tests_conformance_jinja_cases_LDADD = $(ENGINE_LIBS)
tests_conformance_tokenizer_vectors_SOURCES = tests/conformance/tokenizer_vectors.c \
	tests/lib/json_line.c tests/lib/json_line.h
tests_conformance_tokenizer_vectors_LDADD = $(ENGINE_LIBS)

# A program of at most 80 lines that uses only engine/memwall.h.
noinst_PROGRAMS += tests/example/greedy
tests_example_greedy_LDADD = $(ENGINE_LIBS)

include tests/unit/local.mk
include tests/terminal/local.mk
include tests/fuzz/local.mk
include tests/bench/local.mk

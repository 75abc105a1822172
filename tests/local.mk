# tests: unit tests are cmocka programs, one a module; slow ones have their own commands.
AM_TESTS_ENVIRONMENT = LC_ALL=C.UTF-8; export LC_ALL; \
	MW_SRCDIR='$(abs_top_srcdir)'; export MW_SRCDIR; \
	MW_BUILDDIR='$(abs_top_builddir)'; export MW_BUILDDIR; \
	MW_SHARED='$(abs_top_srcdir)/../shared'; export MW_SHARED; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;
if ENABLE_SANITIZER
AM_TESTS_ENVIRONMENT += MW_SANITIZED=1; export MW_SANITIZED; \
	LSAN_OPTIONS='suppressions=$(abs_top_srcdir)/tests/leaks_of_others'; export LSAN_OPTIONS;
endif

EXTRA_DIST += tests/README.md tests/summary.sh tests/skip.sh tests/leaks_of_others

# What the last "make check" found, case by case; the last line has the sums.
summary:
	@$(SHELL) $(top_srcdir)/tests/summary.sh $(TEST_LOGS)
.PHONY: summary

# Reference vocabularies, unpacked by the test of tokenizers.
clean-local:
	rm -rf tests/conformance/vocabularies

EXTRA_DIST += tests/tree/words.py tests/tree/references.py \
	tests/lib/program.py tests/lib/gguf_template.py \
	tests/lib/deny.py tests/lib/fail_with.h
dist_check_SCRIPTS += tests/tree/test_tree.py tests/tree/test_options.py \
	tests/tree/test_package.py \
	tests/program/test_budget.py tests/program/test_run.py tests/program/test_eval.py \
	tests/program/test_long_text.py tests/program/test_once.py \
	tests/program/test_surroundings.py tests/program/test_outputs.py \
	tests/terminal/test_tmux.py

if HAVE_CMOCKA
UNIT_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
UNIT_LIBS = $(ENGINE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_base
tests_unit_test_base_SOURCES = tests/unit/test_base.c
tests_unit_test_base_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_base_LDADD = $(UNIT_LIBS)
check_PROGRAMS += tests/unit/test_files
tests_unit_test_files_SOURCES = tests/unit/test_files.c tests/unit/tree.c tests/unit/tree.h
tests_unit_test_files_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_files_LDADD = $(UNIT_LIBS)
endif

include tests/unit/format.mk
include tests/unit/text.mk
include tests/unit/compute.mk
include tests/unit/stream.mk
include tests/unit/engine.mk
include tests/unit/hub.mk
include tests/unit/telemetry.mk
include tests/unit/dash.mk
include tests/unit/ui.mk
include tests/unit/chat.mk
include tests/unit/src.mk
include tests/terminal/local.mk
include tests/fuzz/local.mk
include tests/fuzz/fuzz.mk
include tests/fuzz/chat.mk

# unit tests of text, and the program that compares with reference vectors
EXTRA_DIST += tests/data/templates

noinst_PROGRAMS += tests/conformance/tokenizer_vectors
tests_conformance_tokenizer_vectors_SOURCES = tests/conformance/tokenizer_vectors.c \
	tests/lib/json_line.c tests/lib/json_line.h
tests_conformance_tokenizer_vectors_LDADD = $(ENGINE_LIBS)

noinst_PROGRAMS += tests/conformance/jinja_cases
tests_conformance_jinja_cases_SOURCES = tests/conformance/jinja_cases.c
tests_conformance_jinja_cases_LDADD = $(ENGINE_LIBS)

noinst_PROGRAMS += tests/bench/bench_tokenize
tests_bench_bench_tokenize_SOURCES = tests/bench/bench_tokenize.c
tests_bench_bench_tokenize_LDADD = $(ENGINE_LIBS)

dist_check_SCRIPTS += tests/conformance/test_tokenizers.py \
	tests/conformance/test_tokenize_command.py \
	tests/conformance/test_chat_templates.py tests/conformance/test_jinja.py
EXTRA_DIST += tests/data/jinja tests/data/jinja/make_cases.py tests/data/jinja/reference.py

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_bpe
tests_unit_test_bpe_SOURCES = tests/unit/test_bpe.c
tests_unit_test_bpe_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_bpe_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_tokenizer
tests_unit_test_tokenizer_SOURCES = tests/unit/test_tokenizer.c tests/unit/tiny_vocab.c \
	tests/unit/tiny_vocab.h
tests_unit_test_tokenizer_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_tokenizer_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_jinja
tests_unit_test_jinja_SOURCES = tests/unit/test_jinja.c
tests_unit_test_jinja_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_jinja_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_chat_format
tests_unit_test_chat_format_SOURCES = tests/unit/test_chat_format.c tests/unit/tiny_vocab.c \
	tests/unit/tiny_vocab.h
tests_unit_test_chat_format_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_chat_format_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_chat_template
tests_unit_test_chat_template_SOURCES = tests/unit/test_chat_template.c \
	tests/unit/tiny_vocab.c tests/unit/tiny_vocab.h
tests_unit_test_chat_template_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_chat_template_LDADD = $(UNIT_LIBS)
endif

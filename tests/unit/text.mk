# unit tests of text, and the program that compares with reference vectors
noinst_PROGRAMS += tests/conformance/tokenizer_vectors
tests_conformance_tokenizer_vectors_SOURCES = tests/conformance/tokenizer_vectors.c \
	tests/lib/json_line.c tests/lib/json_line.h
tests_conformance_tokenizer_vectors_LDADD = $(ENGINE_LIBS)

noinst_PROGRAMS += tests/bench/bench_tokenize
tests_bench_bench_tokenize_SOURCES = tests/bench/bench_tokenize.c
tests_bench_bench_tokenize_LDADD = $(ENGINE_LIBS)

dist_check_SCRIPTS += tests/conformance/test_tokenizers.py

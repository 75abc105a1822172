# unit tests of text, and the program that compares with reference vectors
noinst_PROGRAMS += tests/conformance/tokenizer_vectors
tests_conformance_tokenizer_vectors_SOURCES = tests/conformance/tokenizer_vectors.c \
	tests/lib/json_line.c tests/lib/json_line.h
tests_conformance_tokenizer_vectors_LDADD = $(ENGINE_LIBS)

# Readers of model files.
fuzz_programs += tests/fuzz/fuzz_gguf
tests_fuzz_fuzz_gguf_SOURCES = tests/fuzz/fuzz_gguf.c tests/fuzz/fuzz_file.h $(FUZZ_MAIN)
tests_fuzz_fuzz_gguf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_gguf_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/gguf

fuzz_programs += tests/fuzz/fuzz_safetensors
tests_fuzz_fuzz_safetensors_SOURCES = tests/fuzz/fuzz_safetensors.c tests/fuzz/fuzz_file.h \
	$(FUZZ_MAIN)
tests_fuzz_fuzz_safetensors_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_safetensors_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/safetensors

fuzz_programs += tests/fuzz/fuzz_config_json
tests_fuzz_fuzz_config_json_SOURCES = tests/fuzz/fuzz_config_json.c tests/fuzz/fuzz_file.h \
	$(FUZZ_MAIN)
tests_fuzz_fuzz_config_json_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_config_json_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/config_json

fuzz_programs += tests/fuzz/fuzz_index_json
tests_fuzz_fuzz_index_json_SOURCES = tests/fuzz/fuzz_index_json.c tests/fuzz/fuzz_file.h \
	$(FUZZ_MAIN)
tests_fuzz_fuzz_index_json_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_index_json_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/index_json

# Vocabularies and text.
fuzz_programs += tests/fuzz/fuzz_tokenizer_json
tests_fuzz_fuzz_tokenizer_json_SOURCES = tests/fuzz/fuzz_tokenizer_json.c \
	tests/fuzz/fuzz_file.h tests/fuzz/fuzz_folder.h tests/fuzz/fuzz_vocab_check.h $(FUZZ_MAIN)
tests_fuzz_fuzz_tokenizer_json_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_tokenizer_json_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/tokenizer_json

fuzz_programs += tests/fuzz/fuzz_tokenizer_config
tests_fuzz_fuzz_tokenizer_config_SOURCES = tests/fuzz/fuzz_tokenizer_config.c \
	tests/fuzz/fuzz_file.h tests/fuzz/fuzz_folder.h $(FUZZ_MAIN)
tests_fuzz_fuzz_tokenizer_config_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_tokenizer_config_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/tokenizer_config

fuzz_programs += tests/fuzz/fuzz_vocab_gguf
tests_fuzz_fuzz_vocab_gguf_SOURCES = tests/fuzz/fuzz_vocab_gguf.c tests/fuzz/fuzz_file.h \
	tests/fuzz/fuzz_vocab_check.h $(FUZZ_MAIN)
tests_fuzz_fuzz_vocab_gguf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_vocab_gguf_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/vocab_gguf

fuzz_programs += tests/fuzz/fuzz_decoder
tests_fuzz_fuzz_decoder_SOURCES = tests/fuzz/fuzz_decoder.c tests/unit/tiny_vocab.c \
	tests/unit/tiny_vocab.h $(FUZZ_MAIN)
tests_fuzz_fuzz_decoder_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_decoder_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/decoder

# Whole models, opened, planned and evaluated.
fuzz_programs += tests/fuzz/fuzz_mutate
tests_fuzz_fuzz_mutate_SOURCES = tests/fuzz/fuzz_mutate.c tests/fuzz/fuzz_model.c \
	tests/fuzz/fuzz_model.h $(FUZZ_MAIN)
tests_fuzz_fuzz_mutate_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_mutate_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/mutate

fuzz_programs += tests/fuzz/fuzz_jinja
tests_fuzz_fuzz_jinja_SOURCES = tests/fuzz/fuzz_jinja.c $(FUZZ_MAIN)
tests_fuzz_fuzz_jinja_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_jinja_LDADD = $(ENGINE_LIBS)
EXTRA_DIST += tests/fuzz/corpus/jinja tests/fuzz/jinja.dict

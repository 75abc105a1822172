# unit tests of format
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_catalogue
tests_unit_test_catalogue_SOURCES = tests/unit/test_catalogue.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_catalogue_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_catalogue_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_tensor_table
tests_unit_test_tensor_table_SOURCES = tests/unit/test_tensor_table.c
tests_unit_test_tensor_table_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_tensor_table_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_malformed
tests_unit_test_malformed_SOURCES = tests/unit/test_malformed.c
tests_unit_test_malformed_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_malformed_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_snapshot
tests_unit_test_snapshot_SOURCES = tests/unit/test_snapshot.c
tests_unit_test_snapshot_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_snapshot_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_summary
tests_unit_test_summary_SOURCES = tests/unit/test_summary.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_summary_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_summary_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_gguf
tests_unit_test_gguf_SOURCES = tests/unit/test_gguf.c tests/unit/gguf_write.h
tests_unit_test_gguf_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_gguf_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_config
tests_unit_test_config_SOURCES = tests/unit/test_config.c
tests_unit_test_config_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_config_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_json
tests_unit_test_json_SOURCES = tests/unit/test_json.c
tests_unit_test_json_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_json_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_no_memory
tests_unit_test_no_memory_SOURCES = tests/unit/test_no_memory.c \
	tests/lib/model_path.c tests/lib/model_path.h
tests_unit_test_no_memory_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_no_memory_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
tests_unit_test_no_memory_LDADD = $(UNIT_LIBS)
endif

dist_check_SCRIPTS += tests/conformance/test_inspect.py tests/conformance/test_whole_model.py
EXTRA_DIST += tests/lib/tiny_model.py

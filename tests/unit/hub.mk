# unit tests of hub
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_cache_layout
tests_unit_test_cache_layout_SOURCES = tests/unit/test_cache_layout.c
tests_unit_test_cache_layout_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_cache_layout_LDADD = $(UNIT_LIBS)
endif

# unit tests of format
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_catalogue
tests_unit_test_catalogue_SOURCES = tests/unit/test_catalogue.c
tests_unit_test_catalogue_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_catalogue_LDADD = $(UNIT_LIBS)
endif

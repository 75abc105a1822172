# unit tests of machine and telemetry
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_machine
tests_unit_test_machine_SOURCES = tests/unit/test_machine.c tests/unit/tree.c tests/unit/tree.h
tests_unit_test_machine_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_machine_LDADD = $(UNIT_LIBS)
endif

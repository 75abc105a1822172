# unit tests of machine and telemetry
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_machine tests/unit/test_telemetry

tests_unit_test_machine_SOURCES = tests/unit/test_machine.c tests/unit/tree.c tests/unit/tree.h
tests_unit_test_machine_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_machine_LDADD = $(UNIT_LIBS)

tests_unit_test_telemetry_SOURCES = tests/unit/test_telemetry.c
tests_unit_test_telemetry_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_telemetry_LDADD = $(UNIT_LIBS)
endif

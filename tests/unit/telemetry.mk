# unit tests of machine and telemetry
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_machine tests/unit/test_telemetry tests/unit/test_record \
	tests/unit/test_verdict tests/unit/test_watch

tests_unit_test_machine_SOURCES = tests/unit/test_machine.c tests/unit/tree.c tests/unit/tree.h
tests_unit_test_machine_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_machine_LDADD = $(UNIT_LIBS)

tests_unit_test_telemetry_SOURCES = tests/unit/test_telemetry.c
tests_unit_test_telemetry_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_telemetry_LDADD = $(UNIT_LIBS)

tests_unit_test_record_SOURCES = tests/unit/test_record.c tests/unit/tree.c tests/unit/tree.h \
	tests/unit/made_sample.c tests/unit/made_sample.h
tests_unit_test_record_CPPFLAGS = $(UNIT_CPPFLAGS) $(YAJL_CFLAGS)
tests_unit_test_record_LDADD = $(UNIT_LIBS)

tests_unit_test_verdict_SOURCES = tests/unit/test_verdict.c \
	tests/unit/made_sample.c tests/unit/made_sample.h
tests_unit_test_verdict_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_verdict_LDADD = $(UNIT_LIBS)

tests_unit_test_watch_SOURCES = tests/unit/test_watch.c tests/unit/tree.c tests/unit/tree.h
tests_unit_test_watch_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_watch_LDADD = $(UNIT_LIBS)
endif

# unit tests of stream
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_plan
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_plan_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_stream
tests_unit_test_stream_SOURCES = tests/unit/test_stream.c \
	tests/unit/stream_model.c tests/unit/stream_model.h
tests_unit_test_stream_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_stream_LDADD = $(UNIT_LIBS)
endif

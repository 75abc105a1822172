# unit tests of the canvas and the dashboard
EXTRA_DIST += tests/data/dash
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_canvas tests/unit/test_dash

tests_unit_test_canvas_SOURCES = tests/unit/test_canvas.c
tests_unit_test_canvas_CPPFLAGS = $(UNIT_CPPFLAGS) $(NCURSES_CFLAGS)
tests_unit_test_canvas_LDADD = $(UI_LIBS) $(UNIT_LIBS)

tests_unit_test_dash_SOURCES = tests/unit/test_dash.c \
	tests/unit/made_sample.c tests/unit/made_sample.h
tests_unit_test_dash_CPPFLAGS = $(UNIT_CPPFLAGS) $(NCURSES_CFLAGS)
tests_unit_test_dash_LDADD = $(UI_LIBS) $(UNIT_LIBS)
endif

# unit tests of the canvas and the dashboard
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_canvas
tests_unit_test_canvas_SOURCES = tests/unit/test_canvas.c
tests_unit_test_canvas_CPPFLAGS = $(UNIT_CPPFLAGS) $(NCURSES_CFLAGS)
tests_unit_test_canvas_LDADD = $(UI_LIBS) $(UNIT_LIBS)
endif

# ./memwall on a pseudo-terminal, talking to a model of tests/lib/talker.c
PROGRAM_SOURCES = tests/lib/pty_screen.c tests/lib/pty_screen.h \
	tests/lib/talker.c tests/lib/talker.h \
	tests/terminal/program.c tests/terminal/program.h

check_PROGRAMS += tests/terminal/test_looks
tests_terminal_test_looks_SOURCES = tests/terminal/test_looks.c $(PROGRAM_SOURCES)
tests_terminal_test_looks_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_looks_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_reading
tests_terminal_test_reading_SOURCES = tests/terminal/test_reading.c $(PROGRAM_SOURCES)
tests_terminal_test_reading_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_reading_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_saving
tests_terminal_test_saving_SOURCES = tests/terminal/test_saving.c $(PROGRAM_SOURCES)
tests_terminal_test_saving_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_saving_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_stopping
tests_terminal_test_stopping_SOURCES = tests/terminal/test_stopping.c $(PROGRAM_SOURCES)
tests_terminal_test_stopping_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_stopping_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_storm
tests_terminal_test_storm_SOURCES = tests/terminal/test_storm.c $(PROGRAM_SOURCES)
tests_terminal_test_storm_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_storm_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_commands
tests_terminal_test_commands_SOURCES = tests/terminal/test_commands.c $(PROGRAM_SOURCES)
tests_terminal_test_commands_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_commands_LDADD = $(UI_LIBS) $(ENGINE_LIBS) $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_killed
tests_terminal_test_killed_SOURCES = tests/terminal/test_killed.c $(PROGRAM_SOURCES)
tests_terminal_test_killed_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_killed_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_plain_mode
tests_terminal_test_plain_mode_SOURCES = tests/terminal/test_plain_mode.c $(PROGRAM_SOURCES)
tests_terminal_test_plain_mode_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_plain_mode_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_figures
tests_terminal_test_figures_SOURCES = tests/terminal/test_figures.c $(PROGRAM_SOURCES)
tests_terminal_test_figures_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_figures_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_template
tests_terminal_test_template_SOURCES = tests/terminal/test_template.c $(PROGRAM_SOURCES)
tests_terminal_test_template_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_template_LDADD = $(TERMINAL_LIBS)

# By hand: tests/bench/screen.py MEMWALL MODEL
EXTRA_DIST += tests/bench/screen.py

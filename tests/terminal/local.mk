# tests of the program as a whole on a pseudo-terminal
noinst_PROGRAMS += tests/terminal/fake_memwall
tests_terminal_fake_memwall_SOURCES = tests/terminal/fake_memwall.c \
	tests/lib/fake_chat.c tests/lib/fake_chat.h
tests_terminal_fake_memwall_LDADD = $(UI_LIBS) $(ENGINE_LIBS)

if HAVE_CMOCKA
if HAVE_VTERM
TERMINAL_CPPFLAGS = $(UNIT_CPPFLAGS) $(VTERM_CFLAGS)
TERMINAL_LIBS = $(CMOCKA_LIBS) $(VTERM_LIBS) -lutil
TERMINAL_SOURCES = tests/lib/pty_screen.c tests/lib/pty_screen.h \
	tests/terminal/fake_run.c tests/terminal/fake_run.h

check_PROGRAMS += tests/terminal/test_screen
tests_terminal_test_screen_SOURCES = tests/terminal/test_screen.c $(TERMINAL_SOURCES)
tests_terminal_test_screen_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_screen_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_choices
tests_terminal_test_choices_SOURCES = tests/terminal/test_choices.c $(TERMINAL_SOURCES)
tests_terminal_test_choices_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_choices_LDADD = $(TERMINAL_LIBS)

check_PROGRAMS += tests/terminal/test_terminals
tests_terminal_test_terminals_SOURCES = tests/terminal/test_terminals.c \
	tests/lib/pty_screen.c tests/lib/pty_screen.h
tests_terminal_test_terminals_CPPFLAGS = $(TERMINAL_CPPFLAGS)
tests_terminal_test_terminals_LDADD = $(TERMINAL_LIBS)

include tests/terminal/program.mk
endif
endif

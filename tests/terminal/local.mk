# tests of the program as a whole on a pseudo-terminal
noinst_PROGRAMS += tests/terminal/fake_memwall
tests_terminal_fake_memwall_SOURCES = tests/terminal/fake_memwall.c \
	tests/lib/fake_chat.c tests/lib/fake_chat.h
tests_terminal_fake_memwall_LDADD = $(UI_LIBS) $(ENGINE_LIBS)

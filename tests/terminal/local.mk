# The chat on a pseudo-terminal: fake_memwall has the screen without an engine; the other tests
# run ./memwall with a model of tests/lib/talker.c.
noinst_PROGRAMS += tests/terminal/fake_memwall
tests_terminal_fake_memwall_SOURCES = tests/terminal/fake_memwall.c \
	tests/lib/fake_engine.c tests/lib/fake_engine.h
tests_terminal_fake_memwall_LDADD = $(UI_LIBS) $(ENGINE_LIBS)

if HAVE_CMOCKA
if HAVE_VTERM
check_PROGRAMS += \
	tests/terminal/test_attach \
	tests/terminal/test_answers \
	tests/terminal/test_choices \
	tests/terminal/test_commands \
	tests/terminal/test_compact \
	tests/terminal/test_config \
	tests/terminal/test_figures \
	tests/terminal/test_habits \
	tests/terminal/test_killed \
	tests/terminal/test_looks \
	tests/terminal/test_panels \
	tests/terminal/test_pick \
	tests/terminal/test_plain_mode \
	tests/terminal/test_reading \
	tests/terminal/test_saving \
	tests/terminal/test_screen \
	tests/terminal/test_sgr \
	tests/terminal/test_stopping \
	tests/terminal/test_storm \
	tests/terminal/test_template \
	tests/terminal/test_terminals \
	tests/terminal/test_too_long \
	tests/terminal/test_tour \
	tests/terminal/test_wall \
	tests/terminal/test_window
endif
endif

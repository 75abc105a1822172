# ui/term: the terminal: its modes, keys, cells, colours and the line that is edited.
libui_a_SOURCES += \
	ui/term/background.c ui/term/background.h \
	ui/term/box.c ui/term/box.h \
	ui/term/canvas.c ui/term/canvas.h \
	ui/term/capability.c ui/term/capability.h \
	ui/term/environment.c ui/term/environment.h \
	ui/term/catch.c ui/term/catch.h \
	ui/term/direct.c ui/term/direct.h \
	ui/term/edit.c ui/term/edit.h \
	ui/term/fatal.c ui/term/fatal.h \
	ui/term/history.c ui/term/history.h \
	ui/term/ink.c ui/term/ink.h \
	ui/term/input.c ui/term/input.h \
	ui/term/key.h \
	ui/term/key_unit.c ui/term/key_unit.h \
	ui/term/keys.c ui/term/keys.h \
	ui/term/modes.c ui/term/modes.h \
	ui/term/screen.c ui/term/screen.h \
	ui/term/sgr.c ui/term/sgr.h \
	ui/term/term.c ui/term/term.h ui/term/term_internal.h \
	ui/term/term_curses.c ui/term/term_leave.c ui/term/term_theme.c \
	ui/term/window.c ui/term/window.h

# ui: the screen.  Includes only engine/memwall.h from the engine.
noinst_LIBRARIES += libui.a
libui_a_CPPFLAGS = $(AM_CPPFLAGS) $(NCURSES_CFLAGS) $(READLINE_CFLAGS) $(MD4C_CFLAGS) \
	$(UTF8PROC_CFLAGS) $(YAJL_CFLAGS)
libui_a_SOURCES = \
	ui/app.c ui/app.h ui/app_draw.c ui/app_front.c ui/app_keys.c ui/app_mouse.c \
	ui/change.c ui/change.h ui/full.c ui/full.h \
	ui/capability.c ui/capability.h \
	ui/command_list.h ui/command_options.c ui/command_show.c ui/command_talk.c \
	ui/commands.c ui/commands.h \
	ui/config.c ui/config.h \
	ui/edit.c ui/edit.h \
	ui/fatal.c ui/fatal.h \
	ui/history.c ui/history.h \
	ui/ink.c ui/ink.h \
	ui/input.c ui/input.h \
	ui/keys.c ui/keys.h \
	ui/layout.c ui/layout.h \
	ui/path.c ui/path.h \
	ui/plain.c ui/plain.h \
	ui/replay.c \
	ui/role.c ui/role.h \
	ui/sheet.c ui/sheet.h \
	ui/status.c ui/status.h \
	ui/talk.c ui/talk.h ui/talk_saved.c ui/talk_steps.c \
	ui/term.c ui/term.h \
	ui/theme.c ui/theme.h \
	ui/ui.h
# What a program that draws links with, in front of ENGINE_LIBS.
UI_LIBS = libui.a $(READLINE_LIBS) $(NCURSES_LIBS) $(MD4C_LIBS) $(UTF8PROC_LIBS) $(YAJL_LIBS)

# The themes that come with the program are compiled in from their files.
nodist_libui_a_SOURCES = ui/theme_text.c
CLEANFILES += ui/theme_text.c
EXTRA_DIST += ui/theme_text.awk
ui/theme_text.c: $(THEMES) ui/theme_text.awk
	$(AM_V_GEN)$(MKDIR_P) ui && cd $(srcdir) && \
	  $(AWK) -f ui/theme_text.awk $(THEMES) > $(abs_builddir)/ui/theme_text.c

include ui/chat/local.mk
include ui/dash/local.mk

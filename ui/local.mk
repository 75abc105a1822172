# ui: the screen.  Includes only engine/memwall.h from the engine.
noinst_LIBRARIES += libui.a
libui_a_CPPFLAGS = $(AM_CPPFLAGS) $(NCURSES_CFLAGS) $(READLINE_CFLAGS) $(MD4C_CFLAGS) \
	$(UTF8PROC_CFLAGS) $(YAJL_CFLAGS)
libui_a_SOURCES = \
	ui/role.c ui/role.h \
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

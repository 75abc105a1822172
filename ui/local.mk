# ui: the screen.  It includes only public headers and base of the engine.
noinst_LIBRARIES += libui.a
libui_a_CPPFLAGS = $(AM_CPPFLAGS) $(NCURSES_CFLAGS) $(READLINE_CFLAGS) $(MD4C_CFLAGS) \
	$(UTF8PROC_CFLAGS) $(YAJL_CFLAGS)
libui_a_SOURCES = ui/ui.h
EXTRA_DIST += ui/README.md
# The libraries of a program that draws, before ENGINE_LIBS.
UI_LIBS = libui.a $(READLINE_LIBS) $(NCURSES_LIBS) $(MD4C_LIBS) $(UTF8PROC_LIBS) $(YAJL_LIBS)

include ui/words/local.mk
include ui/look/local.mk
include ui/options/local.mk
include ui/term/local.mk
include ui/chart/local.mk
include ui/engine/local.mk
include ui/text/local.mk
include ui/pick/local.mk
include ui/store/local.mk
include ui/talk/local.mk
include ui/dash/local.mk
include ui/app/local.mk

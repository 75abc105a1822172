# src: the program.  It includes only public headers and base of the engine.
bin_PROGRAMS += memwall
memwall_CPPFLAGS = $(AM_CPPFLAGS) -DPKGDATADIR='"$(pkgdatadir)"'
memwall_SOURCES = src/command.h src/command_line.c src/command_line.h src/commands.c \
	src/errors.c src/help.c src/main.c src/other_words.c src/other_words.h \
	src/settings.c src/settings.h src/start.c src/start.h
include src/base/local.mk
include src/machine/local.mk
include src/models/local.mk
include src/text/local.mk
include src/plan/local.mk
include src/doctor/local.mk
include src/measure/local.mk
include src/report/local.mk
include src/serve/local.mk
include src/commands/local.mk
memwall_LDADD = $(UI_LIBS) $(ENGINE_LIBS)
memwall_LDFLAGS = $(SAN_FLAGS) $(SMALL_LDFLAGS) -Wl,--as-needed

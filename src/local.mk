# src: the program.  Includes only engine/memwall.h from the engine.
bin_PROGRAMS += memwall
memwall_SOURCES = \
	src/main.c \
	src/command.h src/commands.c src/help.c src/report.c \
	src/options.h src/options.c src/options_table.c \
	src/completions.c
memwall_LDADD = $(ENGINE_LIBS)

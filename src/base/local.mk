# src/base: shared by the rooms of src.
memwall_SOURCES += src/base/beside.c src/base/beside.h src/base/paths.c src/base/paths.h \
	src/base/progress.c src/base/progress.h src/base/signals.c src/base/signals.h \
	src/base/statistics.c src/base/statistics.h src/base/text_table.c \
	src/base/text_table.h src/base/ticker.c src/base/ticker.h src/base/variables.c \
	src/base/variables.h

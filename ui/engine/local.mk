# ui/engine: the table of functions through which the screen talks to an engine.
libui_a_SOURCES += \
	ui/engine/engine.h \
	ui/engine/local.c ui/engine/local.h \
	ui/engine/remote.c ui/engine/remote.h

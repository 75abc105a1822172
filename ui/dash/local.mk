# ui/dash: the dashboard and its widgets, and the cells that all of ui/ draws on.
libui_a_SOURCES += \
	ui/cluster.c ui/cluster.h \
	ui/canvas.c ui/canvas.h \
	ui/dash/dash.c ui/dash/dash.h \
	ui/dash/state.c ui/dash/state.h \
	ui/dash/arrange.c ui/dash/arrange.h \
	ui/dash/figure.c ui/dash/figure.h \
	ui/dash/curve.c ui/dash/curve.h \
	ui/dash/widgets.c ui/dash/widget.h \
	ui/dash/verdict.c \
	ui/dash/speed.c \
	ui/dash/memory.c \
	ui/dash/cache.c \
	ui/dash/kv.c \
	ui/dash/layers.c \
	ui/dash/strip.c \
	ui/dash/player.c ui/dash/player.h \
	ui/replay.c

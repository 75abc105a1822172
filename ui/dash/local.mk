# ui/dash: the dashboard and its widgets.
libui_a_SOURCES += \
	ui/dash/arrange.c ui/dash/arrange.h \
	ui/dash/cache.c \
	ui/dash/curve.c ui/dash/curve.h \
	ui/dash/dash.c ui/dash/dash.h \
	ui/dash/experts.c \
	ui/dash/explain.c ui/dash/explain.h \
	ui/dash/figure.c ui/dash/figure.h \
	ui/dash/kv.c \
	ui/dash/large.c ui/dash/large.h \
	ui/dash/layers.c \
	ui/dash/memory.c \
	ui/dash/panels.c ui/dash/panels.h \
	ui/dash/player.c ui/dash/player.h \
	ui/dash/server.c ui/dash/server.h \
	ui/dash/speed.c \
	ui/dash/state.c ui/dash/state.h \
	ui/dash/strip.c \
	ui/dash/token.c ui/dash/token.h \
	ui/dash/verdict.c \
	ui/dash/waterfall.c ui/dash/waterfall.h \
	ui/dash/widget.h \
	ui/dash/wall.c ui/dash/widgets.c

# ui/dash: the dashboard and its widgets, and the cells that all of ui/ draws on.
libui_a_SOURCES += \
	ui/cluster.c ui/cluster.h \
	ui/canvas.c ui/canvas.h

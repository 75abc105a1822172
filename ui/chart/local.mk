# ui/chart: charts as SVG, and charts in a terminal.
libui_a_SOURCES += \
	ui/chart/chart.c ui/chart/chart.h \
	ui/chart/plot.c \
	ui/chart/svg.c ui/chart/svg.h \
	ui/chart/ticks.c ui/chart/ticks.h

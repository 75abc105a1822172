# src/measure: bench, sweep and demo.
memwall_SOURCES += src/measure/cage_keeper.c src/measure/cage_keeper.h \
	src/measure/metrics.c src/measure/metrics.h src/measure/mapped.c src/measure/mapped.h src/measure/measure.c src/measure/measure.h \
	src/measure/measure_all.c src/measure/measure_all.h src/measure/measure_child.c \
	src/measure/measure_child.h src/measure/point.c src/measure/point.h \
	src/measure/result_files.c src/measure/result_files.h src/measure/results.c \
	src/measure/results.h src/measure/results_print.c src/measure/results_print.h \
	src/measure/sides.c src/measure/sides.h src/measure/sides_text.c \
	src/measure/sweep_chart.c src/measure/sweep_chart.h

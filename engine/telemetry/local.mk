# engine/telemetry: the block of counters, its sampler, the recorder, the replayer.
libengine_a_SOURCES += \
	engine/telemetry/telemetry.c engine/telemetry/telemetry.h \
	engine/telemetry/sample.h

# engine/telemetry: the block of counters, its sampler, the recorder, the replayer.
libengine_a_SOURCES += \
	engine/telemetry/telemetry.c engine/telemetry/telemetry.h \
	engine/telemetry/rates.c engine/telemetry/rates.h \
	engine/telemetry/verdict.c engine/telemetry/verdict.h \
	engine/telemetry/fields.c engine/telemetry/fields.h \
	engine/telemetry/json.c engine/telemetry/json.h \
	engine/telemetry/lines.c engine/telemetry/lines.h \
	engine/telemetry/recorder.c engine/telemetry/recorder.h \
	engine/telemetry/replay.c engine/telemetry/replay.h \
	engine/telemetry/watch.c engine/telemetry/watch.h \
	engine/telemetry/shares.c engine/telemetry/shares.h \
	engine/telemetry/sample.h

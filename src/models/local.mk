# src/models: models on disk and in the hub.
memwall_SOURCES += src/models/exponents_print.c src/models/exponents_print.h \
	src/models/hub.c src/models/hub.h src/models/inspect_json.c \
	src/models/inspect_print.c src/models/inspect_print.h src/models/known.c \
	src/models/known.h src/models/kv_files_print.c src/models/kv_files_print.h \
	src/models/models.c src/models/models.h \
	src/models/pull_print.c src/models/pull_print.h \
	src/models/remote.c src/models/remote.h src/models/stores.c \
	src/models/stores.h

# engine/stream: catalogue and plan to bytes in memory at the right moment.
libengine_a_SOURCES += \
	engine/stream/area.c engine/stream/area.h \
	engine/stream/backend.h \
	engine/stream/backend_pread.c \
	engine/stream/backend_uring.c \
	engine/stream/expert_cache.c engine/stream/expert_cache.h \
	engine/stream/expert_policy.c engine/stream/expert_policy.h \
	engine/stream/fetch.c engine/stream/fetch.h \
	engine/stream/io_choice.c engine/stream/io_choice.h \
	engine/stream/lookup.c engine/stream/lookup.h \
	engine/stream/mapping.c engine/stream/mapping.h \
	engine/stream/mirror.c engine/stream/mirror.h \
	engine/stream/pinned.c engine/stream/pinned.h \
	engine/stream/populate.c engine/stream/populate.h \
	engine/stream/read_now.c engine/stream/read_now.h \
	engine/stream/reader.c engine/stream/reader_state.c \
	engine/stream/schedule.c engine/stream/schedule.h \
	engine/stream/shape.c engine/stream/shape.h \
	engine/stream/source.c engine/stream/source.h \
	engine/stream/stream.h \
	engine/stream/stream_internal.h \
	engine/stream/stream_fetch.c \
	engine/stream/stream_guest.c \
	engine/stream/stream_low.c \
	engine/stream/stream_lookup.c \
	engine/stream/stream_memory.c \
	engine/stream/stream_open.c \
	engine/stream/stream_pass.c
EXTRA_DIST += engine/stream/README.md

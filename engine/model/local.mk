# engine/model: descriptions of architectures, the forward pass that walks them.
EXTRA_DIST += engine/model/README.md
libengine_a_SOURCES += \
	engine/model/desc.c engine/model/desc.h \
	engine/model/rope.c engine/model/rope.h \
	engine/model/row_cache.c engine/model/row_cache.h \
	engine/model/forward.c engine/model/forward.h engine/model/forward_internal.h \
	engine/model/forward_memory.c engine/model/forward_mul.c \
	engine/model/kv_walk.c engine/model/kv_walk.h \
	engine/model/attend.c engine/model/attend_item.c engine/model/attend_item.h \
	engine/model/attend_chosen.c engine/model/latent.c \
	engine/model/conv.c engine/model/delta.c engine/model/heads.c engine/model/kda.c \
	engine/model/mamba.c \
	engine/model/entries.c engine/model/pools.c \
	engine/model/experts.c engine/model/index.c engine/model/ngrams.c engine/model/numbers.c \
	engine/model/head_input.c engine/model/replay.c engine/model/streams.c engine/model/hyper.c \
	engine/model/products.c engine/model/products.h engine/model/tiles.c engine/model/attend_tiles.c \
	engine/model/rates.c engine/model/rates.h engine/model/steps.c \
	engine/model/steps.h engine/model/way_rates.c engine/model/way_rates.h \
	engine/model/thread_rates.c engine/model/thread_rates.h \
	engine/model/trial.c engine/model/trial.h engine/model/unpack.c

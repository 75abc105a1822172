# engine/hub: where models are kept on this machine, and fetched from.
libengine_a_SOURCES += \
	engine/hub/cache_layout.c engine/hub/cache_layout.h \
	engine/hub/find.c engine/hub/find.h \
	engine/hub/find_beside.c \
	engine/hub/find_describe.c \
	engine/hub/find_head.c \
	engine/hub/find_hub.c \
	engine/hub/find_match.c \
	engine/hub/find_name.c \
	engine/hub/find_ollama.c \
	engine/hub/find_recent.c \
	engine/hub/find_record.c engine/hub/find_record.h \
	engine/hub/find_walk.c \
	engine/hub/models.h

# Models fetched from a hub.
libengine_a_SOURCES += \
	engine/hub/gguf_walk.c engine/hub/gguf_walk.h \
	engine/hub/pull.c engine/hub/pull.h \
	engine/hub/pull_blob.c engine/hub/pull_blob.h \
	engine/hub/pull_variant.c engine/hub/pull_variant.h \
	engine/hub/pull_folder.c engine/hub/pull_folder.h \
	engine/hub/pull_header.c engine/hub/pull_header.h \
	engine/hub/pull_list.c engine/hub/pull_list.h \
	engine/hub/pull_nothing.c engine/hub/pull_nothing.h \
	engine/hub/pull_place.c engine/hub/pull_place.h \
	engine/hub/repo.c engine/hub/repo.h \
	engine/hub/repo_elsewhere.c engine/hub/repo_elsewhere.h \
	engine/hub/repo_words.c engine/hub/repo_words.h

# engine/hub: where models are kept on this machine.
libengine_a_SOURCES += \
	engine/hub/cache_layout.c engine/hub/cache_layout.h \
	engine/hub/find.c engine/hub/find.h \
	engine/hub/find_describe.c \
	engine/hub/find_hub.c \
	engine/hub/find_match.c \
	engine/hub/find_name.c \
	engine/hub/find_ollama.c \
	engine/hub/find_recent.c \
	engine/hub/find_record.c engine/hub/find_record.h \
	engine/hub/find_walk.c

# engine/hub: where models are kept on this machine.
libengine_a_SOURCES += \
	engine/hub/cache_layout.c engine/hub/cache_layout.h

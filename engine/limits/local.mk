# engine/limits: how fast this machine is, and what is remembered of it.
libengine_a_SOURCES += \
	engine/limits/limits.c engine/limits/limits.h \
	engine/limits/observe.c engine/limits/observe.h \
	engine/limits/store.c engine/limits/store.h \
	engine/limits/tried.c engine/limits/tried.h

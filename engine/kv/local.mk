# engine/kv: keys and values, pages and rings; recurrent state.
libengine_a_SOURCES += \
	engine/kv/kv.c engine/kv/kv.h engine/kv/recurrent.c engine/kv/recurrent.h

# engine/kv: keys and values, pages and rings.
libengine_a_SOURCES += engine/kv/kv.c engine/kv/kv.h

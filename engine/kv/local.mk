# engine/kv: keys and values, pages and rings; recurrent state.
libengine_a_SOURCES += \
	engine/kv/kv.c engine/kv/kv.h engine/kv/kv_disk.c engine/kv/kv_internal.h \
	engine/kv/recurrent.c engine/kv/recurrent.h \
	engine/kv/kv_file.c engine/kv/kv_file.h engine/kv/kv_file_format.h

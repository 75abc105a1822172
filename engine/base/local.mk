# engine/base: functions that every room uses and that know nothing of models.
libengine_a_SOURCES += \
	engine/base/err.c engine/base/err.h \
	engine/base/build_name.c engine/base/build_name.h \
	engine/base/cancel.c engine/base/cancel.h \
	engine/base/clock.c engine/base/clock.h \
	engine/base/cpu_cache.c engine/base/cpu_cache.h \
	engine/base/encoding.c engine/base/encoding.h \
	engine/base/arena.c engine/base/arena.h \
	engine/base/folder.c engine/base/folder.h \
	engine/base/new_file.c engine/base/new_file.h \
	engine/base/small_file.c engine/base/small_file.h \
	engine/base/lookalike.c engine/base/lookalike.h \
	engine/base/near.c engine/base/near.h \
	engine/base/greatest.c engine/base/greatest.h \
	engine/base/numbers.c engine/base/numbers.h \
	engine/base/units.c engine/base/units.h \
	engine/base/utf8.c engine/base/utf8.h \
	engine/base/halves.c engine/base/halves.h \
	engine/base/visible.c engine/base/visible.h \
	engine/base/json_text_end.h engine/base/json_write.c engine/base/json_write.h \
	engine/base/thread.c engine/base/thread.h \
	engine/base/keyed_hash.c engine/base/keyed_hash.h \
	engine/base/digest.c engine/base/digest.h \
	engine/base/checksum.c engine/base/checksum.h

# engine/api: the public headers of the engine, one for each subject.
libengine_a_SOURCES += \
	engine/api/chat.h engine/api/diagnose.h engine/api/inspect.h \
	engine/api/known.h engine/api/kv_files.h engine/api/learned.h \
	engine/api/measure.h \
	engine/api/model.h engine/api/option_fields.h engine/api/options.h \
	engine/api/output.h engine/api/plan.h engine/api/products.h \
	engine/api/program.h engine/api/session.h engine/api/text.h \
	engine/api/wall.h engine/api/watch.h

# engine/session: a conversation: evaluate, sample, rewind; what chat, run and eval call.
libengine_a_SOURCES += \
	engine/session/model_open.c engine/session/model_open.h \
	engine/session/setup.c engine/session/sampler.c engine/session/features.c \
	engine/session/session.c engine/session/session.h

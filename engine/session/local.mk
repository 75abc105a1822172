# engine/session: a conversation: evaluate, sample, rewind; what chat, run and eval call.
libengine_a_SOURCES += \
	engine/session/model_open.c engine/session/model_open.h \
	engine/session/setup.c engine/session/sampler.c engine/session/features.c \
	engine/session/text.c engine/session/vocab.c \
	engine/session/vocab_chat.c engine/session/vocab_open.h \
	engine/session/session.c engine/session/session.h \
	engine/session/copies.c engine/session/copies.h \
	engine/session/inspect.c engine/session/output.c \
	engine/session/events.c engine/session/events.h \
	engine/session/conversation.c engine/session/conversation.h \
	engine/session/answer.c engine/session/answer.h \
	engine/session/chat.c \
	engine/session/cost.c engine/session/cost.h \
	engine/session/watch_model.c \
	engine/session/limits.c

# engine/remote: a chat with a model at a server that speaks OpenAI's protocol.
libengine_a_SOURCES += \
	engine/remote/body.c \
	engine/remote/chunk.c engine/remote/chunk.h \
	engine/remote/server_metrics.c engine/remote/server_metrics.h \
	engine/remote/remote.c engine/remote/remote.h engine/remote/remote_internal.h \
	engine/remote/remote_answer.c \
	engine/remote/remote_setting.c \
	engine/remote/remote_thread.c \
	engine/remote/server.c engine/remote/server.h \
	engine/remote/server_models.c \
	engine/remote/thinking.c engine/remote/thinking.h \
	engine/remote/watcher.c engine/remote/watcher.h

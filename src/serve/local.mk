# src/serve: other programs over HTTP.  libmicrohttpd is loaded when a server starts.
memwall_CPPFLAGS += $(LIBMICROHTTPD_CFLAGS)
memwall_SOURCES += src/serve/access.c src/serve/access.h src/serve/web.c src/serve/web.h \
	src/serve/changes.c src/serve/changes.h \
	src/serve/job.c src/serve/job.h src/serve/libmicrohttpd.c \
	src/serve/libmicrohttpd.h src/serve/listen.c src/serve/listen.h \
	src/serve/metrics.c src/serve/metrics.h src/serve/pages.c src/serve/pages.h \
	src/serve/queue.c src/serve/queue.h src/serve/reply.c src/serve/reply.h \
	src/serve/reply_anthropic.c src/serve/reply_logprobs.c \
	src/serve/reply_ollama.c src/serve/reply_openai.c \
	src/serve/request.c src/serve/request.h src/serve/request_anthropic.c \
	src/serve/request_calls.c src/serve/request_field.h src/serve/request_grammar.c \
	src/serve/request_ollama.c src/serve/request_openai.c \
	src/serve/room.h src/serve/routes.c src/serve/routes.h \
	src/serve/server.c src/serve/server.h \
	src/serve/show.c src/serve/show.h \
	src/serve/tool_grammar.c src/serve/tool_grammar.h \
	src/serve/tool_calls.c src/serve/tool_calls.h src/serve/tool_forms.c \
	src/serve/tool_forms.h src/serve/tool_python.c src/serve/tool_scan.c \
	src/serve/tool_scan.h src/serve/tool_tags.c \
	src/serve/tool_types.c src/serve/tool_types.h

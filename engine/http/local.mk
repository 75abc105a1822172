# engine/http: requests to servers, and streams of events.
libengine_a_SOURCES += \
	engine/http/http.c engine/http/http.h engine/http/http_get.c \
	engine/http/libcurl.c engine/http/libcurl.h \
	engine/http/sse.c engine/http/sse.h

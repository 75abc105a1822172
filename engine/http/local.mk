# engine/http: requests to servers.
libengine_a_SOURCES += \
	engine/http/http.c engine/http/http.h engine/http/http_get.c \
	engine/http/libcurl.c engine/http/libcurl.h

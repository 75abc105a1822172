# ui/app: the application: panes, the key that goes to each, plain output, replay.
libui_a_SOURCES += \
	ui/app/app.c ui/app/app.h \
	ui/app/app_draw.c \
	ui/app/app_find.c \
	ui/app/app_front.c \
	ui/app/app_keys.c \
	ui/app/app_models.c \
	ui/app/app_mouse.c \
	ui/app/app_panels.c \
	ui/app/app_wall.c \
	ui/app/app_window.c \
	ui/app/editor.c ui/app/editor.h \
	ui/app/latency.c ui/app/latency.h \
	ui/app/layout.c ui/app/layout.h \
	ui/app/picker.c \
	ui/app/plain.c ui/app/plain.h ui/app/plain_internal.h \
	ui/app/plain_lines.c ui/app/plain_show.c \
	ui/app/replay.c \
	ui/app/serving.c \
	ui/app/sides.c \
	ui/app/status.c ui/app/status.h \
	ui/app/terminal.c \
	ui/app/tour.c ui/app/tour.h

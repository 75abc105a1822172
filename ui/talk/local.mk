# ui/talk: the conversation with the engine and its commands.
libui_a_SOURCES += \
	ui/talk/change.c ui/talk/change.h \
	ui/talk/command_list.h \
	ui/talk/command_options.c \
	ui/talk/command_show.c \
	ui/talk/command_talk.c \
	ui/talk/commands.c ui/talk/commands.h \
	ui/talk/config.c ui/talk/config.h \
	ui/talk/full.c ui/talk/full.h \
	ui/talk/talk.c ui/talk/talk.h \
	ui/talk/talk_saved.c \
	ui/talk/talk_steps.c

# ui/talk: the conversation with the engine and its commands.
libui_a_SOURCES += \
	ui/talk/carried.c ui/talk/carried.h \
	ui/talk/change_sheet.c ui/talk/change_sheet.h \
	ui/talk/changes.c ui/talk/changes.h \
	ui/talk/command_chats.c \
	ui/talk/command_list.h \
	ui/talk/command_settings.c ui/talk/command_settings.h \
	ui/talk/command_shell.c \
	ui/talk/command_show.c \
	ui/talk/command_talk.c \
	ui/talk/command_tried.c \
	ui/talk/commands.c ui/talk/commands.h \
	ui/talk/context_full.c ui/talk/context_full.h \
	ui/talk/files.c ui/talk/files.h \
	ui/talk/front.c ui/talk/front.h \
	ui/talk/help.c ui/talk/help.h \
	ui/talk/help_answer.c ui/talk/help_answer.h \
	ui/talk/help_entry.c ui/talk/help_entry.h \
	ui/talk/help_find.c ui/talk/help_find.h \
	ui/talk/help_question.c ui/talk/help_question.h \
	ui/talk/help_words.c ui/talk/help_words.h \
	ui/talk/ledger.c ui/talk/ledger.h \
	ui/talk/opening.c ui/talk/opening.h \
	ui/talk/outbox.c ui/talk/outbox.h \
	ui/talk/saving.c ui/talk/saving.h \
	ui/talk/server_setting.c ui/talk/server_setting.h \
	ui/talk/shell.c ui/talk/shell.h \
	ui/talk/talk.c ui/talk/talk.h \
	ui/talk/talk_answers.c \
	ui/talk/talk_compact.c \
	ui/talk/talk_events.c \
	ui/talk/talk_help.c \
	ui/talk/talk_internal.h \
	ui/talk/talk_kept.c \
	ui/talk/talk_kv.c \
	ui/talk/talk_messages.c \
	ui/talk/talk_model.c \
	ui/talk/talk_saved.c \
	ui/talk/theme_sheet.c ui/talk/theme_sheet.h \
	ui/talk/tokens.c ui/talk/tokens.h \
	ui/talk/too_long.c ui/talk/too_long.h

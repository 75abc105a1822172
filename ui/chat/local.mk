# ui/chat: the chat pane: cleaning, wrapping, Markdown, transcript, chats on disk.
libui_a_SOURCES += \
	ui/chat/clean.c ui/chat/clean.h \
	ui/chat/copy.c ui/chat/copy.h \
	ui/chat/receipt.c ui/chat/receipt.h \
	ui/chat/store.h \
	ui/chat/transcript.h \
	ui/chat/whole_file.c ui/chat/whole_file.h \
	ui/chat/wrap.c ui/chat/wrap.h

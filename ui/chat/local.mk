# ui/chat: the chat pane: cleaning, wrapping, Markdown, transcript, chats on disk.
libui_a_SOURCES += \
	ui/chat/body.c ui/chat/body.h \
	ui/chat/chatline.c ui/chat/chatline.h \
	ui/chat/clean.c ui/chat/clean.h \
	ui/chat/codeblock.c ui/chat/codeblock.h \
	ui/chat/codecopy.c \
	ui/chat/copy.c ui/chat/copy.h \
	ui/chat/draw.c \
	ui/chat/entity.c ui/chat/entity.h \
	ui/chat/find.c \
	ui/chat/highlight.c ui/chat/highlight.h \
	ui/chat/inline.c ui/chat/inline.h \
	ui/chat/json_text.c ui/chat/json_text.h \
	ui/chat/markdown.c ui/chat/markdown.h \
	ui/chat/receipt.c ui/chat/receipt.h \
	ui/chat/rich.c ui/chat/rich.h \
	ui/chat/segment.c ui/chat/segment.h \
	ui/chat/select.c \
	ui/chat/store.c ui/chat/store.h ui/chat/store_internal.h \
	ui/chat/store_export.c \
	ui/chat/store_items.c \
	ui/chat/store_list.c \
	ui/chat/store_read.c ui/chat/store_rescue.c \
	ui/chat/table.c ui/chat/table.h \
	ui/chat/transcript.c ui/chat/transcript.h ui/chat/transcript_internal.h \
	ui/chat/view.c \
	ui/chat/whole_file.c ui/chat/whole_file.h \
	ui/chat/wrap.c ui/chat/wrap.h

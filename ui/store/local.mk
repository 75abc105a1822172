# ui/store: saved chats.
libui_a_SOURCES += \
	ui/store/attached.h \
	ui/store/chatline.c ui/store/chatline.h \
	ui/store/kind.h \
	ui/store/store.c ui/store/store.h \
	ui/store/store_export.c \
	ui/store/store_internal.h \
	ui/store/store_items.c \
	ui/store/store_list.c \
	ui/store/store_name.c \
	ui/store/store_other.c \
	ui/store/store_others.c \
	ui/store/store_read.c \
	ui/store/store_rescue.c \
	ui/store/store_write.c

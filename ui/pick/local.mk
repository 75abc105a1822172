# ui/pick: the list of models on this machine, to choose one.
libui_a_SOURCES += \
	ui/pick/details.c ui/pick/details.h \
	ui/pick/wish.c ui/pick/wish.h \
	ui/pick/pick.c ui/pick/pick.h

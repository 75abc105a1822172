# src/machine: the limits of this machine.
memwall_SOURCES += src/machine/limit_words.c src/machine/limit_words.h \
	src/machine/limits.c src/machine/limits.h src/machine/limits_print.c \
	src/machine/limits_print.h src/machine/once.c src/machine/once.h \
	src/machine/products_print.c src/machine/products_print.h

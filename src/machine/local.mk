# src/machine: the limits of this machine.
memwall_SOURCES += src/machine/kept_limits.c src/machine/kept_limits.h \
	src/machine/limit_words.c src/machine/limit_words.h src/machine/limits_print.c \
	src/machine/limits_print.h src/machine/products_print.c \
	src/machine/products_print.h

# src/plan: plans as text.
memwall_SOURCES += src/plan/plan_print.c \
	src/plan/plan_print.h src/plan/plan_table.c src/plan/plan_table.h \
	src/plan/what_if.c src/plan/what_if.h

# engine/plan: how much memory, how fast: arithmetic only.
libengine_a_SOURCES += \
	engine/plan/plan.c engine/plan/plan.h

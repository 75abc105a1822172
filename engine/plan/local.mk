# engine/plan: the memory plan and the predicted speed; arithmetic only.
libengine_a_SOURCES += \
	engine/plan/plan.c engine/plan/plan.h \
	engine/plan/advice.c engine/plan/advice.h \
	engine/plan/anchor.c engine/plan/anchor.h \
	engine/plan/breath.c engine/plan/breath.h \
	engine/plan/explain.c engine/plan/explain.h engine/plan/factors.h engine/plan/input.h \
	engine/plan/table.h engine/plan/times.h engine/plan/outlook.c engine/plan/outlook.h \
	engine/plan/speed.c engine/plan/speed.h

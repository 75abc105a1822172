# engine/plan: the memory plan and the predicted speed; arithmetic only.
libengine_a_SOURCES += \
	engine/plan/plan.c engine/plan/plan.h \
	engine/plan/advice.c engine/plan/advice.h \
	engine/plan/anchor.c engine/plan/anchor.h \
	engine/plan/basis.h engine/plan/outlook.c engine/plan/outlook.h \
	engine/plan/speed.c engine/plan/speed.h

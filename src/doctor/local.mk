# src/doctor: what doctor prints.
memwall_SOURCES += src/doctor/doctor_advice.c src/doctor/doctor_advice.h \
	src/doctor/doctor_print.c src/doctor/doctor_print.h src/doctor/doctor_summary.c \
	src/doctor/doctor_summary.h src/doctor/doctor_walls.c src/doctor/doctor_walls.h

# engine/format: see the header of each module for what it is.
libengine_a_SOURCES += \
	engine/format/tensor_type.c engine/format/tensor_type.h

# engine/compute: see the header of each module for what it is.
libengine_a_SOURCES += \
	engine/compute/dequant.c engine/compute/dequant.h \
	engine/compute/half.h \
	engine/compute/kernel_sets.h \
	engine/compute/kernels.c engine/compute/kernels.h \
	engine/compute/kernels_generic.c \
	engine/compute/kv_types.c engine/compute/kv_types.h \
	engine/compute/pool.c engine/compute/pool.h \
	engine/compute/quants.h

# engine/machine: the limits of this computer, and figures of the kernel.
libengine_a_SOURCES += \
	engine/machine/kernel_file.c engine/machine/kernel_file.h \
	engine/machine/proc.c engine/machine/proc.h \
	engine/machine/psi.c engine/machine/psi.h \
	engine/machine/pagecache.c engine/machine/pagecache.h \
	engine/machine/cgroup.c engine/machine/cgroup.h \
	engine/machine/machine.c engine/machine/machine.h \
	engine/machine/probe.c engine/machine/probe.h engine/machine/probe_internal.h \
	engine/machine/probe_disk.c engine/machine/probe_memory.c \
	engine/machine/slices.c engine/machine/slices.h \
	engine/machine/load.c engine/machine/load.h \
	engine/machine/load_meter.c engine/machine/load_meter.h \
	engine/machine/cage.c engine/machine/cage.h \
	engine/machine/disturb.c engine/machine/disturb.h \
	engine/machine/energy.c engine/machine/energy.h \
	engine/machine/survey.c engine/machine/survey.h engine/machine/fact.h \
	engine/machine/program.c engine/machine/program.h \
	engine/machine/thread_use.c engine/machine/thread_use.h \
	engine/machine/os_value.h

# unit tests of stream
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_plan
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_plan_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_stream
tests_unit_test_stream_SOURCES = tests/unit/test_stream.c \
	tests/unit/stream_model.c tests/unit/stream_model.h
tests_unit_test_stream_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_stream_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_probe
tests_unit_test_probe_SOURCES = tests/unit/test_probe.c \
	tests/unit/stream_model.c tests/unit/stream_model.h
tests_unit_test_probe_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_probe_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/unit/test_schedule
tests_unit_test_schedule_SOURCES = tests/unit/test_schedule.c \
	tests/unit/stream_model.c tests/unit/stream_model.h
tests_unit_test_schedule_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_schedule_LDADD = $(UNIT_LIBS)

check_PROGRAMS += tests/faults/test_stream_faults
tests_faults_test_stream_faults_SOURCES = tests/faults/test_stream_faults.c \
	tests/faults/inject.c tests/faults/inject.h \
	tests/unit/stream_model.c tests/unit/stream_model.h
tests_faults_test_stream_faults_CPPFLAGS = $(UNIT_CPPFLAGS) $(LIBURING_CFLAGS)
tests_faults_test_stream_faults_LDADD = $(UNIT_LIBS)
tests_faults_test_stream_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULTS_WRAP)
check_PROGRAMS += tests/unit/test_mapping
tests_unit_test_mapping_SOURCES = tests/unit/test_mapping.c
tests_unit_test_mapping_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_mapping_LDADD = $(UNIT_LIBS)
check_PROGRAMS += tests/faults/test_chat_faults
tests_faults_test_chat_faults_SOURCES = tests/faults/test_chat_faults.c \
	tests/faults/inject.c tests/faults/inject.h \
	tests/lib/model_path.c tests/lib/model_path.h
tests_faults_test_chat_faults_CPPFLAGS = $(UNIT_CPPFLAGS) $(LIBURING_CFLAGS)
tests_faults_test_chat_faults_LDADD = $(UNIT_LIBS)
tests_faults_test_chat_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULTS_WRAP)
FAULTS_WRAP = -Wl,--wrap=pread,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup \
	-Wl,--wrap=free,--wrap=mmap,--wrap=mprotect,--wrap=pthread_create
if HAVE_LIBURING
FAULTS_WRAP += -Wl,--wrap=io_uring_queue_init_params,--wrap=io_uring_register_files \
	-Wl,--wrap=io_uring_register_buffers,--wrap=io_uring_submit \
	-Wl,--wrap=io_uring_submit_and_wait
endif
endif

# Not built by default: make tests/bench/bench_stream
EXTRA_PROGRAMS += tests/bench/bench_stream
tests_bench_bench_stream_SOURCES = tests/bench/bench_stream.c
tests_bench_bench_stream_LDADD = $(ENGINE_LIBS)

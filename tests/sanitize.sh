#!/bin/sh
# sanitize.sh - build with sanitizers in a folder of its own, and run the tests there.
#
# Usage: tests/sanitize.sh gcc|clang|thread [TEST...]       (TEST: for example tests/unit/test_base)
#
#   gcc, clang   AddressSanitizer and UndefinedBehaviorSanitizer of that compiler, all tests
#   thread       ThreadSanitizer of clang, the tests of code that runs on several threads
#
# The folder is build-gcc, build-clang or build-thread in the current folder, and stays.  Every
# process writes its report to a file in the subfolder "reports".  So a report also counts if the
# test does not look at how that process ends.  Exit status 0: all tests passed without a report.
set -u

threads="tests/unit/test_base tests/unit/test_pool tests/unit/test_stream tests/unit/test_experts
tests/unit/test_mapping tests/unit/test_reread tests/unit/test_probe tests/unit/test_blas
tests/unit/test_same_bits tests/unit/test_tiles tests/unit/test_session
tests/unit/test_rewind tests/unit/test_draft tests/unit/test_chat
tests/unit/test_telemetry tests/unit/test_watch tests/unit/test_record
tests/unit/test_limits tests/unit/test_talk tests/unit/test_threads
tests/unit/test_tokenizer_kept tests/faults/test_stream_faults
tests/faults/test_chat_faults tests/faults/test_memory_out tests/conformance/test_models
tests/terminal/test_answers tests/terminal/test_stopping tests/terminal/test_choices
tests/terminal/test_commands tests/terminal/test_figures tests/terminal/test_panels
tests/terminal/test_pick tests/terminal/test_saving tests/terminal/test_wall
tests/terminal/test_plain_mode tests/terminal/test_too_long tests/program/test_run.py
tests/program/test_draft.py tests/program/test_bench.py tests/program/test_report.py
tests/program/test_stdin.py tests/program/test_keyboard.py
tests/program/test_serve.py tests/program/test_serve_protocols.py"

usage()
{
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

way=${1:-}
[ $# -eq 0 ] || shift
case $way in
gcc | clang)
    compiler=$way
    sanitizers=address,undefined
    ;;
thread)
    compiler=clang
    sanitizers=thread
    # shellcheck disable=SC2086 # one word for each test
    [ $# -gt 0 ] || set -- $threads
    ;;
*)
    usage
    ;;
esac

sources=$(cd "$(dirname "$0")/.." && pwd)
folder=$PWD/build-$way
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
! command -v ccache >/dev/null || compiler="ccache $compiler"
mkdir -p "$folder/reports" && cd "$folder" || exit 1
rm -f reports/*
if [ ! -f config.status ]; then
    [ -x "$sources/configure" ] || "$sources/bootstrap" || exit 1
    "$sources/configure" -q CC="$compiler" CFLAGS="-O1 -g1" --enable-sanitizer=$sanitizers ||
        exit 1
fi

log=log_path=$folder/reports/$way:log_exe_name=1
export ASAN_OPTIONS="$log" UBSAN_OPTIONS="$log:print_stacktrace=1" TSAN_OPTIONS="$log"
if [ $# -eq 0 ]; then
    make -s -k -j"$jobs" check
else
    make -s -k -j"$jobs" check check_PROGRAMS="$*" TESTS="$*"
fi
status=$?
make -s summary ${1:+TESTS="$*"} || status=1
for report in reports/*; do
    [ -f "$report" ] || continue
    printf '\n==== %s\n' "$report"
    head -n 60 "$report"
    status=1
done
exit $status

#!/bin/sh
# summary.sh - count the cases of the last "make check" and print those that failed.
#
# Usage: summary.sh LOG...   (the .log files of all tests; each needs its .trs file)
#
# A case is a line that a test printed:
#   cmocka               [       OK ] name   [  FAILED  ] name   [  SKIPPED ] name
#   scripts              ok name   not ok name   skip name: why
#   Python's unittest    name ... ok   name ... FAIL   name ... skipped 'why'
# A test that printed none is one case, by its exit status.  A test that failed without a failed
# case (a crash, a leak) counts as one more failed case, and so does a test that did not run.
# The output is the names of skipped cases, the ends of failed logs, and the totals.
set -u

tab=$(printf '\t')
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT

cases_of()
{
    # After "run." the cmocka report names failed and skipped cases a second time.
    awk -v OFS='\t' '
        function rest(mark) { return substr($0, index($0, mark) + length(mark)) }
        /^\[==========\] .*[Rr]unning [0-9]+ test/ { closed = 0 }
        /^\[==========\] .* test\(s\) run\./ { closed = 1 }
        closed { next }
        index($0, "[       OK ] ") { print "pass", rest("[       OK ] "); next }
        index($0, "[  FAILED  ] ") { print "fail", rest("[  FAILED  ] "); next }
        index($0, "[  ERROR   ] --- ") { next }
        index($0, "[  SKIPPED ] ") { print "skip", rest("[  SKIPPED ] "); next }
        /^ok / { print(/# SKIP/ ? "skip" : "pass"), substr($0, 4); next }
        /^not ok / { print "fail", substr($0, 8); next }
        /^skip / { print "skip", substr($0, 6); next }
        / \.\.\. (ok|FAIL|ERROR)$/ || / \.\.\. skipped / {
            name = $0
            sub(/ \(__main__[^)]*\)/, "", name)
            print / ok$/ ? "pass" : / skipped / ? "skip" : "fail", name
            next
        }
    ' "$1"
}

for log in "$@"; do
    test=${log%.log}
    if [ ! -f "$test.trs" ] || [ ! -f "$log" ]; then
        printf 'fail\t%s\tdid not run\n' "$test"
        continue
    fi
    result=$(sed -n 's/^:test-result: *\([A-Z]*\).*/\1/p' "$test.trs" | head -n 1)
    cases=$(cases_of "$log")
    if [ -n "$cases" ]; then
        printf '%s\n' "$cases" | while IFS=$tab read -r kind name; do
            printf '%s\t%s\t%s\n' "$kind" "$test" "$name"
        done
    fi
    case $result in
    PASS | XFAIL)
        [ -n "$cases" ] || printf 'pass\t%s\t\n' "$test"
        ;;
    SKIP)
        [ -n "$cases" ] || printf 'skip\t%s\t%s\n' "$test" "$(tail -n 2 "$log" | head -n 1)"
        ;;
    *)
        printf '%s\n' "$cases" | grep -q '^fail' ||
            printf 'fail\t%s\t%s\n' "$test" "ended with ${result:-no result}"
        ;;
    esac
done >"$list"

count()
{
    grep -c "^$1$tab" "$list"
}

awk -F '\t' '$1 == "skip" { print "skipped: " $2 ": " $3 }' "$list"
awk -F '\t' '$1 == "fail" { print $2 }' "$list" | sort -u | while read -r test; do
    printf '\n==== %s\n' "$test"
    awk -F '\t' -v t="$test" '$1 == "fail" && $2 == t { print "failed: " $2 ": " $3 }' "$list"
    [ ! -f "$test.log" ] || tail -n 40 "$test.log"
done

passed=$(count pass)
failed=$(count fail)
skipped=$(count skip)
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]

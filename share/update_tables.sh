#!/bin/sh
# update_tables.sh - write the files that are generated from the program's tables.
#
# Usage: update_tables.sh MEMWALL SRCDIR [--check]
#
# These are parts of man pages.  In the page of a subcommand, they are the lines between
#     .\" options: begin
#     .\" options: end
# and the same with "examples"; in memwall.1 and memwall-chat.1 the same with "commands", in
# memwall.conf.5 with "settings".
# With --check, nothing is written.  Differences are shown, and the exit status is 1.
set -eu

memwall=$1
srcdir=$2
check=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

put()
{
    if [ "$check" = --check ]; then
        if diff -u "$2" "$1" >"$work/diff" 2>&1; then
            echo "ok ${2#"$srcdir"/} is up to date"
        else
            echo "not ok ${2#"$srcdir"/} is not up to date: make update-tables"
            cat "$work/diff"
            status=1
        fi
    elif ! cmp -s "$1" "$2"; then
        cp "$1" "$2"
        echo "written: $2"
    fi
}

# fill PART LIST FILE: replace the lines between the marks of PART in FILE.
fill()
{
    awk -v list="$2" -v begin=".\\\\\" $1: begin" -v end=".\\\\\" $1: end" '
        $0 == begin { print; while ((getline line < list) > 0) print line; skip = 1; found++ }
        $0 == end { skip = 0 }
        !skip
        END { exit found != 1 }' "$3" >"$work/page" || {
        echo "not ok $page has a place for its $1"
        status=1
    }
    cp "$work/page" "$3"
}

# put_part LIST PART PAGE: replace one list of a page.
put_part()
{
    page=$srcdir/man/$3
    cp "$page" "$work/out"
    "$memwall" completions "$1" >"$work/list"
    fill "$2" "$work/list" "$work/out"
    put "$work/out" "$page"
}

put_part commands commands memwall.1
put_part settings settings memwall.conf.5
put_part slash commands memwall-chat.1

for command in $("$memwall" completions list | cut -f 1 | sort -u); do
    page=$srcdir/man/memwall-$command.1
    if [ ! -f "$page" ]; then
        echo "not ok $command has a man page"
        status=1
        continue
    fi
    cp "$page" "$work/out"
    for part in options examples; do
        "$memwall" completions "$part-$command" >"$work/list"
        fill "$part" "$work/list" "$work/out"
    done
    put "$work/out" "$page"
done
exit "$status"

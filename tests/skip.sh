#!/bin/sh
# Stands in for an interpreter that is not installed: the test is skipped.
echo "skip $(basename "$1"): its interpreter is not installed"
exit 77

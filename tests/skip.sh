#!/bin/sh
# Replaces an interpreter that is not installed, and skips the test.
echo "skip $(basename "$1"): its interpreter is not installed"
exit 77

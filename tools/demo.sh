#!/usr/bin/env bash
# The lesson on a scratch folder, without waiting for a key. `make demo` runs it; `make demo KIND=daemonset` that one.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf .demo/lesson
kubepy demo ${KIND:+"$KIND"} --no-wait --folder=.demo/lesson

#!/usr/bin/env bash
# random_programs.sh BUILD SECONDS [SEED]: random programs in all modes for about so long, each mode with seeds of its own, and
# plans on the null driver. Seeds count from SEED (0); the same ones give the same programs.
set -euo pipefail
build=${1:?a build folder} seconds=${2:?seconds} seed=${3:-0}
tool=$build/tests/clnet-fuzz-graphs
CLNET_CACHE_DIR=${CLNET_CACHE_DIR:-$build/tests/cache}
export CLNET_CACHE_DIR

# share MODE PERCENT [OPTION...]: a mode for a share of the time. Few operations and many programs of one structure: a driver that
# compiles spends its time on running them.
share() {
  local mode=$1 time=$((seconds * $2 / 100))
  shift 2
  echo "-- $mode $*"
  "$tool" --mode "$mode" --seed "$seed" --count 1000000 --seconds "$time" "$@" | tee "$log" | grep -vE '^  |^coverage' || true
  grep -q ' 0 failed$' "$log" || failed=1
  seed=$((seed + 1000000))
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
share plan 22 --max-ops 8 --block 64
share fusion-off 22 --max-ops 20 --block 16
share plan 12 --max-ops 6 --block 64 --same-as reuse-off
share eager 6 --max-ops 12
share oracles 8 --max-ops 8
share memory 8 --max-ops 8 --block 64
own=$("$build/tools/clnet-info" --json |
  python3 -c 'import json, sys; print(next(d["native_float_width"] for d in json.load(sys.stdin)["devices"] if d["default"]))')
for width in 4 8 16; do
  [ "$width" = "$own" ] || share "width-$width" 5 --max-ops 6 --block 64
done
for device in cpu8 rtx3090 a770; do
  export OCL_ICD_VENDORS=$build/tests/null_opencl.icd NULL_OPENCL_DEVICE=$device CLNET_CACHE=off CLNET_TUNE=off CLNET_VERIFY=1
  share plan 4 --block 1 --plan-only
done
exit "$failed"

#!/usr/bin/env bash
# random_programs.sh BUILD SECONDS [SEED]: random programs in all modes for about so long, each mode with seeds of its own, on the
# devices that are installed and on the null driver. Seeds count from SEED (0); the same ones give the same programs.
set -euo pipefail
build=$(realpath "${1:?a build folder}") seconds=${2:?seconds} seed=${3:-0}
tool=$build/tests/clnet-fuzz-graphs
export CLNET_CACHE_DIR=${CLNET_CACHE_DIR:-$build/tests/cache} CLNET_VERIFY=${CLNET_VERIFY:-1}
log=$(mktemp)
trap 'rm -f "$log" "$log.oclgrind"' EXIT
failed=0

# share PERCENT MODE [OPTION...]: a mode for a share of the time. Few operations and many programs of one structure: a driver that
# compiles shall spend its time on running them.
share() {
  local time=$((seconds * $1 / 100)) mode=$2 device=${CLNET_DEVICE:-${NULL_OPENCL_DEVICE:-the default device}}
  shift 2
  ${wrapper:-} "$tool" --mode "$mode" --seed "$seed" --count 1000000 --seconds "$time" --shrink-seconds 20 "$@" >"$log" 2>&1 || failed=1
  grep -vE '^  [0-9]|^coverage|^mode ' "$log" || true
  echo "$device: $(grep '^mode ' "$log" | tail -n 1 | grep . || echo "mode $mode ended without a word, FAILED")"
  seed=$((seed + 1000000))
}

share 6 plan --max-ops 8 --block 64
share 6 strips --max-ops 6 --block 64
share 6 launch-batches --max-ops 8 --block 64 --same-as plan
share 6 fusion-off --block 16
share 6 plan --max-ops 6 --block 64 --same-as sharing-off
share 5 eager --max-ops 12
share 6 references --max-ops 8
share 8 two-devices --max-ops 8 --block 64
share 5 two-lanes --max-ops 8 --block 64 --same-as plan
share 8 memory --max-ops 8 --block 16
share 6 poison --max-ops 8 --block 64
own=$("$build/tools/clnet-info" --json |
  python3 -c 'import json, sys; print(next(d["native_float_width"] for d in json.load(sys.stdin)["devices"] if d["default"]))')
for width in 1 4 8 16; do
  [ "$width" = "$own" ] || share 6 "width-$width" --max-ops 6 --block 64
done
if command -v oclgrind >/dev/null; then
  wrapper="oclgrind --build-options -cl-opt-disable --log $log.oclgrind" CLNET_DEVICE=oclgrind CLNET_CACHE=off share 4 plan \
    --max-ops 3 --block 64
  [ ! -s "$log.oclgrind" ] || { cat "$log.oclgrind"; failed=1; }
fi
for device in cpu8 rtx3090 a770; do
  OCL_ICD_VENDORS=$build/tests/null_opencl.icd NULL_OPENCL_DEVICE=$device CLNET_CACHE=off CLNET_TUNE=off \
    share 4 plan --block 1 --plan-only
done
exit "$failed"

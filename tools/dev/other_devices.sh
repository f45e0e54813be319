#!/bin/sh
# Runs the operations' tests on another OpenCL implementation than PoCL, with the programs that are in build/.
#   tools/dev/other_devices.sh rusticl [option of ctest]...    Mesa's rusticl on llvmpipe (package mesa-opencl-icd)
#   tools/dev/other_devices.sh oclgrind [test of Catch2]...    the checking simulator (package oclgrind), which is some 1000 times
#                                                              slower: without arguments it runs a chosen subset
set -eu
cd "$(dirname "$0")/../.."
device=${1:-}
[ $# -eq 0 ] || shift
case $device in
  rusticl)
    export RUSTICL_ENABLE=swrast CLNET_DEVICE=llvmpipe
    exec ctest --test-dir build --output-on-failure --no-tests=error -L ops "$@"
    ;;
  oclgrind)
    [ $# -gt 0 ] || set -- "oclgrind:*"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # Unoptimised, because the optimiser makes instructions that the simulator does not know; not from the cache for the same reason.
    CLNET_DEVICE=oclgrind CLNET_CACHE=off CLNET_POISON=0 oclgrind --build-options -cl-opt-disable --data-races --uninitialized --log "$log" build/tests/clnet-op-tests -w NoTests "$@"
    if [ -s "$log" ]; then
      cat "$log" >&2
      exit 1
    fi
    echo "Oclgrind has nothing to report."
    ;;
  *)
    sed -n '3,5s/^# *//p' "$0" >&2
    exit 2
    ;;
esac

#!/bin/sh
# Runs libFuzzer on the readers of files (tests/readers), with address and undefined-behaviour checks.
#   tools/dev/fuzz_readers.sh [seconds for each reader, default 60] [reader]...
# Starts from small sound files, and from those of the acceptance data where CLNET_ACCEPTANCE_DIR names them. What it finds is
# printed, and kept in build/fuzz/found. What was mended stays as a small file in tests/readers/cases, which the tests read. Memory is an
# oracle: no reader takes 256 MB at once, or 1 GB in all. Networks run on the null driver.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- safetensors idx cifar checkpoint parts tuning programs image npy npz torch csv tokenizer wav onnx onnx_tensor
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target clnet-fuzz-readers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 tools/dev/fuzz_seeds.py "$work"
mkdir -p build/fuzz/found
export OCL_ICD_VENDORS="$PWD/build/fuzz/tests/null_opencl.icd" NULL_OPENCL_DEVICE=cpu8 CLNET_CACHE=off CLNET_TUNE=off
for reader in "$@"; do
  more=
  [ ! -d "tests/readers/cases/$reader" ] || more=tests/readers/cases/$reader
  if [ -n "${CLNET_ACCEPTANCE_DIR:-}" ] && [ -d "$CLNET_ACCEPTANCE_DIR/bad/$reader" ]; then
    mkdir -p "$work/bad/$reader"
    find "$CLNET_ACCEPTANCE_DIR/bad/$reader" -type f -size -64k | while read -r file; do
      cp "$file" "$work/bad/$reader/$(echo "$file" | md5sum | cut -c 1-16)"
    done
    more="$more $work/bad/$reader"
  fi
  echo "-- $reader, $seconds s"
  # shellcheck disable=SC2086  # folders or nothing
  if ! build/fuzz/tests/clnet-fuzz-reader-"$reader" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1000 -malloc_limit_mb=256 -max_len=65536 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix=build/fuzz/found/"$reader"- "$work/$reader" $more >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
  fi
  grep -E "number_of_executed_units|peak_rss" "$work/log"
done

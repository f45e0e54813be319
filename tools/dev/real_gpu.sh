#!/usr/bin/env bash
# What clnet does on an NVIDIA GPU: packed where it was built, run where the GPU is, without network and OpenCL of that machine's own.
#
#   tools/dev/real_gpu.sh pack [--build build] [--into .gpu] [--images 20000] [--model "ITEM..."] [--driver FOLDER]
#       copies programs, libraries that a bare system lacks, images, and modelled times: at most 60 MiB. FOLDER has NVIDIA's libraries
#       for a machine whose driver came without OpenCL (of exactly its version)
#   tools/dev/real_gpu.sh run [--from .gpu] [--steps driver,facts,...] [--budget 560] [--divide 1] [--driver FILE|system]
#                             [--items "ITEM..."] [--tests "FILE..."] [--work FOLDER]
#       the steps in the order of their worth, each within its limit and all within the budget, in seconds. $OUT (./gpu-results) gets
#       summary.txt, report.json, and logs, traces and programs as archives, renewed after each step. --divide 10: limits are a tenth.
#       --items, --tests: only these of bench, pytorch and tune, and of the tests. --work: where a later run of other steps goes on.
#   tools/dev/real_gpu.sh rehearse [--build build]
#       both on the null driver in less than two minutes; fails when a step or the summary is missing. CI does it
#   tools/dev/real_gpu.sh steps
set -uo pipefail
script=$(realpath "$0")
here=$(dirname "$script")
root=$(realpath "$here/../..")

# name|limit in seconds|what it does
steps='driver|25|finds libnvidia-opencl.so and makes it the only driver
facts|25|what device and driver say, what the compiler takes, how exact its arithmetic is
smoke|40|clnet-train, one epoch
self-test|60|every solver on small problems, against double precision
op-tests|200|the tests of operations, many at a time, with the verifier
bench|90|clnet-bench, 57 items, nine of them in TF32 besides
pytorch|130|the same items in PyTorch
host|15|what launches, events, reads and writes cost the host
kernels|60|launches of networks beside their modelled times; registers of the programs
tune|110|every solver of ten items is timed
random|35|random programs, judged
others|75|faults, processes, units, models; the report of clnet-info'

networks="resnet18-train-b16 resnet18-infer-b16 resnet18-infer-b1 char-gpt-train-b32 cnn-train-b128 resnet50-train-b8 resnet50-infer-b16
  mobilenetv2-train-b16 mobilenetv2-infer-b16 vit-tiny-infer-b8 unet-128-train-b4 lstm-128-forward-b32 lstm-512-gradient-b32
  char-gpt-generate-b1 mlp-infer-b1 lstm-by-hand-128-t200-b32-compiled resnet18-train-b16-f16 resnet50-train-b8-f16 char-gpt-train-b32-f16"
operations="matmul-512 matmul-1024 matmul-2048 matmul-1024-f16 matmul-2048-f16 matmul-2048-bf16 matmul-64-b64 matmul-256-b64
  linear-512-1000-b16-forward conv-64-64-56-b16-forward conv-64-64-56-b16-backward-data conv-64-64-56-b16-backward-weights
  conv-256-256-14-b16-forward conv-256-256-14-b16-backward-data conv-256-256-14-b16-backward-weights conv-512-512-7-b16-forward
  conv-512-512-7-b16-backward-weights conv7x7-3-64-224-s2-b16-forward conv7x7-3-64-224-s2-b16-backward-weights
  conv1x1-256-64-56-b16-forward conv1x1-256-64-56-b16-backward-data conv1x1-256-64-56-b16-backward-weights conv1x1-64-256-56-b16-forward
  depthwise-144-56-b16-forward depthwise-144-56-b16-backward-data depthwise-144-56-b16-backward-weights softmax-4096-1000
  layer-norm-4096-1024-forward layer-norm-4096-1024-train batch-norm-64-56-b16-train adam-25m sum-64m relu-64m argmax-64m
  elementwise-gelu-1m permute-6d-1m maxpool3s2-64-112-b16-forward embedding-50000-512-b8192-backward"
tf32="matmul-1024 matmul-2048 resnet18-train-b16 resnet18-infer-b16 char-gpt-train-b32 conv-64-64-56-b16-forward
  conv-256-256-14-b16-forward conv1x1-256-64-56-b16-forward resnet50-infer-b16"
tuned="matmul-1024 matmul-2048 matmul-2048-f16 conv-64-64-56-b16-forward conv-256-256-14-b16-forward conv-64-64-56-b16-backward-weights
  conv-256-256-14-b16-backward-weights conv-512-512-7-b16-backward-weights conv1x1-256-64-56-b16-forward conv1x1-64-256-56-b16-forward"
modelled="resnet18-train-b16 resnet18-infer-b16 mobilenetv2-infer-b16 char-gpt-train-b32 vit-tiny-infer-b8"
# Tests that take longest begin first; those of the first line are run case by case.
by_case="conv2d configs"
long_tests="matmul matrix_units cl_sub_groups reduce softmax cross_entropy batch_norm layer_norm max_pool2d attention optim fusion elementwise"

fail() {
  echo "real_gpu: $*" >&2
  exit 2
}

# ---- pack

programs="tools/clnet-info tools/clnet-train tools/clnet-bench clnet/clnet-build-kernels tests/clnet-op-tests tests/clnet-unit-tests
  tests/clnet-model-tests tests/clnet-fault-tests tests/clnet-fuzz-graphs tests/life_fork tests/life_exit tests/life_dlopen
  tests/torch_reference tests/train_reference"
modules="tests/libopencl_faults.so tests/libprocess_ending.so tests/liblife_plugin.so"
most_bytes=$((60 << 20))

# The libraries that programs of a folder load, as "name path".
loaded() {
  find "$1" -type f -perm -u+x -exec env LD_LIBRARY_PATH="$1" ldd {} + 2>/dev/null | awk '$2 == "=>" && $3 ~ "^/" { print $1, $3 }' | sort -u
}

pack() {
  local build=$root/build into=$root/.gpu images=20000 driver='' name path size data=/usr/share/datasets/fashion-mnist
  while [ $# -gt 1 ]; do
    case $1 in
      --build) build=$2 ;;
      --into) into=$2 ;;
      --images) images=$2 ;;
      --model) modelled=$2 ;;
      --driver) driver=$2 ;;
      *) fail "pack knows no $1" ;;
    esac
    shift 2
  done
  [ $# -eq 0 ] || fail "$1 wants a value"
  [ -x "$build/tests/clnet-op-tests" ] || fail "$build has no tests/clnet-op-tests: build first, with tests"
  build=$(realpath "$build")
  [ ! -e "$into" ] || [ -e "$into/places" ] || [ -z "$(ls -A "$into")" ] || fail "$into has other things in it"
  rm -rf "$into"
  mkdir -p "$into"/{tools,tests,clnet,lib,older,model}
  for name in $programs $modules libclnet.so.0.1; do
    strip -o "$into/$name" "$build/$name" || fail "$build has no $name"
  done
  loaded "$into" | while read -r name path; do
    case $name in
      libclnet.so.* | libopencl_faults.so | ld-linux* | libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.*) ;;
      # For a machine whose own are too old.
      libstdc++.so.* | libgcc_s.so.*) strip --strip-unneeded -o "$into/older/$name" "$(realpath "$path")" ;;
      *) strip --strip-unneeded -o "$into/lib/$name" "$(realpath "$path")" ;;
    esac
  done
  # Most have the library inside; run unpacks them.
  for name in $programs; do
    gzip -9n "$into/$name"
  done
  [ -z "$driver" ] || { mkdir "$into/driver" && cp -L "$driver"/lib*.so* "$into/driver/"; } || fail "$driver has no libraries"
  { python3 "$here/shorten_idx.py" "$data" "$into/data" "$images" && gzip -9n "$into"/data/*; } || fail "there are no images in $data"
  for name in $modelled; do
    python3 -B "$here/model_time.py" --build "$build" --devices h200 --rows 1000 "$name" >"$into/model/$name" || fail "$name has no modelled times"
  done
  # Where the programs look for files of the tree and of the build.
  { sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt"; echo "$build"; } >"$into/places"
  git -C "$root" describe --always --dirty >"$into/commit" 2>/dev/null || echo unknown >"$into/commit"
  size=$(du -sb "$into" | cut -f1)
  echo "packed $(cat "$into/commit") into $into: $(find "$into" -type f | wc -l) files, $((size >> 20)) MiB"
  [ "$size" -le $most_bytes ] || fail "$into is larger than $((most_bytes >> 20)) MiB: take fewer --images"
}

# ---- run: what steps are made of

# At most so many seconds, divided, of what the step and the whole run have left.
within() {
  local most=$(($1 / divide)) left=$(((step_end < budget ? step_end : budget) - SECONDS))
  [ "$most" -ge 2 ] || most=2
  echo $((most < left ? most : left))
}
# bounded SECONDS COMMAND...: 124 or 137 where the time is up. The subshell keeps bash's "Killed" off the output.
bounded() {
  local time
  time=$(within "$1")
  [ "$time" -gt 0 ] || return 124
  (
    exec 3>&2 2>/dev/null
    timeout -k 3 "$time" "${@:2}" 2>&3 3>&-
    exit $?
  )
}
# With clnet's libraries, which other programs should not get.
clnet() { bounded "$1" env LD_LIBRARY_PATH="$library_path" "${@:2}"; }
# read_results COMMAND...: by real_gpu.py. Quick, and wanted most where a step's time is up: outside its limit.
read_results() { [ -z "$python" ] || timeout 20 "$python" -B "$here/real_gpu.py" "$@"; }
# side_by_side SECONDS COMMAND ARGUMENT...: for each line of the input, which the command gets as its last argument.
side_by_side() {
  local lines
  lines=$(cat)
  clnet "$1" xargs -d '\n' -n 1 -P "$jobs" "${@:2}" <<<"$lines"
}
note() { printf '%s\n' "$*" | tee -a "$work/notes"; }
notes() { cut -c1-170 | tee -a "$work/notes"; }

# archive NAME: at most 15 MB of it, without the largest files where it would be more.
archive() {
  local to=$out/$1.tar.gz how='gzip -6' most
  command -v xz >/dev/null && how='xz -T0 -2' to=$out/$1.tar.xz
  [ -n "$(ls -A "$work/$1")" ] || return 0
  # In bytes: find rounds sizes up to whole units.
  for most in 1000000000 4000000 100000; do
    find "$work/$1" -type f -size "-${most}c" -printf "$1/%P\n" | tar -C "$work" -cf - -T - | $how >"$work/part"
    if [ "$(stat -c %s "$work/part")" -le 15000000 ]; then
      mv "$work/part" "$to"
      return
    fi
  done
}
keep_results() {
  if compgen -G "$logs/bench-*.json" >/dev/null || [ -e "$logs/pytorch.jsonl" ]; then
    # Never an empty table in place of an older one.
    read_results ratios "$logs" >"$work/ratios" 2>"$logs/ratios.log" && mv "$work/ratios" "$logs/ratios.md"
  fi
  cat "$work/notes" >"$out/summary.txt"
  [ ! -e "$logs/ratios.md" ] || { echo; cat "$logs/ratios.md"; } >>"$out/summary.txt"
  archive logs
  archive traces
  archive programs
}

# ---- run: the steps

step_driver() {
  local place found=$driver
  if [ "$driver" = system ]; then
    note "driver: what the system's loader finds"
    return
  fi
  if [ -z "$driver" ]; then
    for place in $(ldconfig -p 2>/dev/null | sed -n 's/.*libnvidia-opencl\.so\.1 .*=> //p') /usr/lib/x86_64-linux-gnu /usr/lib64 \
      /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib /usr/local/cuda/compat "$from/driver"; do
      found=$(find -L "$place" -maxdepth 1 -name 'libnvidia-opencl.so*' 2>/dev/null | sort | head -n 1)
      [ -z "$found" ] || break
    done
    [ -n "$found" ] || found=$(bounded 20 find / \( -path /proc -o -path /sys \) -prune -o -name 'libnvidia-opencl.so*' -print 2>/dev/null | head -n 1)
  fi
  if [ ! -e "$found" ]; then
    note "there is no libnvidia-opencl.so; of NVIDIA's libraries there are: $(ldconfig -p 2>/dev/null | grep -oE 'lib(cuda|nvidia)[a-z0-9-]*\.so\.1 ' | sort -u | tr '\n' ' ')"
    note "(pack --driver takes one along, of the version: $(sed -n 's/.*Module  *\([0-9.]*\) .*/\1/p' /proc/driver/nvidia/version 2>/dev/null))"
    return 3
  fi
  realpath "$found" >"$work/only.icd"
  export OCL_ICD_VENDORS=$work/only.icd
  # What it loads lies beside it.
  library_path=$library_path:$(dirname "$(realpath "$found")")
  note "driver: $found, $(basename "$(realpath "$found")")"
}

step_facts() {
  local status=0 log=$logs/facts-clnet-info.log
  { uname -a; cat /etc/os-release; nproc; free -m; lscpu; ls -l /dev/nvidia*; ldd --version; ldconfig -p; } >"$logs/facts-machine.log" 2>&1
  if command -v nvidia-smi >/dev/null; then
    bounded 10 nvidia-smi -q >"$logs/facts-nvidia-smi.log" 2>&1
    bounded 10 nvidia-smi --query-gpu=name,memory.total,driver_version,clocks.max.sm,power.limit --format=csv,noheader | notes
  fi
  clnet 15 "$from/tools/clnet-info" >"$log" 2>&1 || status=$?
  if [ $status -ne 0 ] && grep -qE 'GLIBCXX|CXXABI|GCC_' "$log"; then
    note "this machine's C++ library is too old: the packed one is used"
    library_path=$from/older:$library_path status=0
    clnet 15 "$from/tools/clnet-info" >"$log" 2>&1 || status=$?
  fi
  grep -vE '^ *$|quirk' "$log" | head -n 12 | notes
  if [ $status -ne 0 ]; then
    note "clnet-info: exit code $status: the rest would be in vain"
    return 3
  fi
  [ -z "$python" ] || bounded 20 "$python" -B "$here/real_gpu_driver.py" facts "$from/lib/libOpenCL.so.1" "$logs/facts-opencl.log" 2>&1 | notes
}

train() { # NAME SECONDS EPOCHS
  local status=0
  CLNET_DEBUG=1 clnet "$2" "$from/tools/clnet-train" --epochs "$3" --data "$from/data" --save "$work/$1.safetensors" >"$logs/$1.log" 2>"$logs/$1-debug.log" || status=$?
  note "clnet-train, $3 epochs: exit code $status; $(grep '^epoch' "$logs/$1.log" | tail -n 1)"
}
step_smoke() {
  train smoke 35 1
  awk '/program .* built in [0-9]+ ms/ { for (i = 1; i < NF; ++i) if ($i == "built") { time = $(i + 2); n++; sum += time; if (time > most) most = time } }
    END { printf "  %d programs built, %d ms in all, %d ms at most\n", n, sum, most }' "$logs/smoke-debug.log" | notes
}

step_self-test() {
  local status=0
  clnet 55 "$from/tools/clnet-info" --self-test --quick --json --jobs "$jobs" >"$logs/self-test.json" 2>"$logs/self-test.log" || status=$?
  note "self-test: exit code $status"
  read_results self-test "$logs/self-test.json" 2>&1 | notes
}

# One file of tests, or "file|case"; the last line of the log has the exit code.
one_test() {
  local program=$1 folder=$2 time=$3 file=${4%%|*} case='' log status=0
  [ "$file" = "$4" ] || case=${4#*|}
  log=$folder/$file${case:+-$(cksum <<<"$case" | cut -d' ' -f1)}.log
  timeout --foreground -s KILL "$time" "$program" --filenames-as-tags -w NoTests "${case:+\"$case\"}[#$file]" >"$log" 2>&1 || status=$?
  echo "exit code $status" >>"$log"
}
# tests PROGRAM FOLDER SECONDS [FILE...]: all files' tests; names what failed.
tests() {
  local program=$from/tests/$1 folder=$logs/$2 time files file
  time=$(within "$3")
  mkdir -p "$folder"
  files=${*:4}
  [ -n "$files" ] || files=$(clnet 10 "$program" --filenames-as-tags --list-tags 2>/dev/null | grep -oE '\[#\w+\]' | tr -d '[]#' | sort -u)
  for file in $files; do
    case " $by_case " in
      *" $file "*) clnet 10 "$program" --filenames-as-tags --list-test-names-only "[#$file]" 2>/dev/null | sed "s/^/1 $file|/" ;;
      *) case " $long_tests " in *" $file "*) echo "2 $file" ;; *) echo "3 $file" ;; esac ;;
    esac
  done | sort -s -k 1,1 | cut -c3- >"$folder.list"
  export -f one_test
  CLNET_VERIFY=1 CLNET_BUILD_PROCESSES=1 side_by_side "$3" bash -c 'one_test "$@"' one "$program" "$folder" "$time" <"$folder.list" 2>>"$folder.errors"
  # Catch2 names the case between two lines, before the places where it failed.
  awk 'FNR == 1 { head = 0; name = "?" } /^----------/ { head = !head; if (head) { getline; name = $0 } } /FAILED:$/ { failed[FILENAME ": " name]++ }
    /^exit code/ && $3 > 128 && $3 < 160 && $3 != 137 { failed[FILENAME ": ended by signal " $3 - 128]++ }
    END { for (name in failed) print failed[name], name }' "$folder"/*.log 2>/dev/null | sed "s|$folder/||" | sort -rn >"$folder.failures"
  note "$1: $(cat "$folder"/*.log | grep -cx 'exit code 0') of $(grep -c . "$folder.list") passed," \
    "$(cat "$folder"/*.log | grep -cxE 'exit code (124|137)') and $(grep -L '^exit code' "$folder"/*.log | wc -l) ran out of time," \
    "$(($(grep -c . "$folder.list") - $(find "$folder" -name '*.log' | wc -l))) did not begin; cases failed: $(grep -c . "$folder.failures")"
  head -n 12 "$folder.failures" | sed 's/^/  /' | notes
}
step_op-tests() {
  # shellcheck disable=SC2086  # a list of words
  tests clnet-op-tests op-tests 200 $only_tests
}

# bench NAME ITEM...: goes on behind an item that ends the process.
bench() {
  local name=$1 number=0 json
  shift
  while [ $# -gt 0 ] && [ "$(within 90)" -gt 0 ]; do
    number=$((number + 1))
    json=$logs/bench-$name-$number.json
    clnet 60 "$from/tools/clnet-bench" "$@" --seconds "$bench_seconds" --json "$json" >>"$logs/bench-$name.log" 2>&1 && return
    while [ $# -gt 0 ] && grep -qsF "\"$1\"" "$json"; do shift; done
    [ $# -eq 0 ] || note "  clnet-bench: $1 failed or took too long: $(tail -n 1 "$logs/bench-$name.log" | cut -c1-100)"
    shift
  done
}
step_bench() {
  local began=$SECONDS
  # Compiled by many processes first, for the driver's cache.
  # shellcheck disable=SC2086  # lists of words
  printf '%s\n' $networks $operations | side_by_side 40 timeout --foreground 30 "$from/tools/clnet-bench" --seconds 0.01 >"$logs/bench-compiling.log" 2>&1
  # shellcheck disable=SC2086
  bench items $networks $operations
  # shellcheck disable=SC2086
  [ -n "$only_items" ] || CLNET_TF32=1 bench tf32 $tf32
  note "clnet-bench: $(cat "$logs"/bench-items-*.json 2>/dev/null | grep -c '"name"') of $(wc -w <<<"$networks $operations") items in $((SECONDS - began)) s; $(grep -hm 1 'in registers' "$logs/bench-items.log")"
}

step_pytorch() {
  local status=0 also=$tf32
  [ -z "$only_items" ] || also=''
  if [ -z "$python" ] || ! bounded 60 "$python" -c 'import torch' 2>/dev/null; then
    note "PyTorch: is not here"
    return
  fi
  # shellcheck disable=SC2086  # lists of words
  bounded 125 "$python" "$here/bench_torch_cuda.py" --tf32 "$also" --json "$logs/pytorch.jsonl" $networks $operations >"$logs/pytorch.log" 2>&1 || status=$?
  note "PyTorch: exit code $status, $(grep -c median_ms "$logs/pytorch.jsonl") times; $(grep -m 1 '^PyTorch' "$logs/pytorch.log")"
}

step_host() {
  [ -n "$python" ] || { note "host: there is no Python"; return; }
  bounded 15 "$python" -B "$here/real_gpu_driver.py" host "$from/lib/libOpenCL.so.1" >"$logs/host.txt" 2>&1
  note "host, us: until it goes on, until the device has ended"
  grep -E '^(launch|largest|read.* 4 KiB|write.* 1024 KiB)' "$logs/host.txt" | sed 's/^/  /' | notes
}

step_kernels() {
  local item path
  for path in "$from"/model/*; do
    item=$(basename "$path")
    # clnet's cache keeps the driver's binaries, from which registers are read.
    CLNET_CACHE=force CLNET_CACHE_DIR=$work/cache-programs CLNET_TRACE=$work/traces/$item.json \
      clnet 30 "$from/tools/clnet-bench" "$item" --seconds 0.05 >>"$logs/kernels.log" 2>&1 || { note "$item: no trace, exit code $?"; continue; }
    read_results kernels "$work/traces/$item.json" "$path" >"$logs/kernels-$item.txt" 2>&1
    head -n 1 "$logs/kernels-$item.txt" | notes
  done
  read_results programs "$work/cache-programs/programs" "$work/programs" 2>&1 | notes
}

one_tuned() {
  CLNET_CACHE_DIR=$1/tune-$2 CLNET_BUILD_PROCESSES=1 "$3/tools/clnet-bench" --tune "$2" --seconds 0.01
}
step_tune() {
  local items=${only_items:-$tuned}
  export -f one_tuned
  # As above; what is chosen meanwhile is worth nothing, and stays in folders of its own.
  # shellcheck disable=SC2016,SC2086  # for another shell; lists of words
  printf '%s\n' $items | side_by_side 60 bash -c 'one_tuned "$0" "$2" "$1"' "$work" "$from" >"$logs/tune-compiling.log" 2>&1
  # shellcheck disable=SC2086
  CLNET_DEBUG=1 CLNET_CACHE_DIR=$work/tune-all clnet 60 "$from/tools/clnet-bench" --tune $items --seconds "$bench_seconds" >"$logs/tune.txt" 2>"$logs/tune.log"
  read_results tune "$logs/tune.log" "$logs/tune.md" 2>&1 | notes
}

step_random() {
  local time mode seed=0
  time=$(($(within 30) - 5))
  [ "$time" -ge 2 ] || time=2
  for mode in plan strips launch-batches fusion-off eager references memory poison; do
    seed=$((seed + 1000000))
    CLNET_VERIFY=1 clnet 35 "$from/tests/clnet-fuzz-graphs" --mode $mode --seed $seed --count 1000000 --seconds "$time" --shrink-seconds 5 \
      --max-ops 8 --block 32 >"$logs/random-$mode.log" 2>&1 &
  done
  wait
  grep -h '^mode ' "$logs"/random-*.log | notes
  grep -L '^mode ' "$logs"/random-*.log | sed 's|.*/|  ended without a word: |' | notes
}

step_others() {
  local name status
  for name in fork exit 'dlopen tests/liblife_plugin.so'; do
    status=0
    # shellcheck disable=SC2086  # an argument or none
    (cd "$from" && clnet 10 tests/life_$name) >"$logs/life-${name%% *}.log" 2>&1 || status=$?
    note "life_${name%% *}: exit code $status"
  done
  tests clnet-fault-tests faults 20
  tests clnet-unit-tests units 15
  tests clnet-model-tests models 25 fit language torch_cases
  clnet 40 "$from/tools/clnet-info" --report "$out/report.json" >"$logs/report.log" 2>&1
  note "clnet-info --report: exit code $?"
  train train 25 5
}

run() {
  local chosen='' name seconds what place target status
  only_items='' only_tests='' from=$root/.gpu budget=560 divide=1 driver='' work=/tmp/real-gpu
  while [ $# -gt 1 ]; do
    case $1 in
      --from) from=$2 ;;
      --steps) chosen=$2 ;;
      --budget) budget=$2 ;;
      --divide) divide=$2 ;;
      --driver) driver=$2 ;;
      --items) only_items=$2 networks='' operations=$2 ;;
      --tests) only_tests=$2 ;;
      --work) work=$2 ;;
      *) fail "run knows no $1" ;;
    esac
    shift 2
  done
  [ $# -eq 0 ] || fail "$1 wants a value"
  from=${from%/}
  if [ -d "$from" ]; then
    find "$from" -path "$from/data" -prune -o -name '*.gz' -exec gzip -d {} + || fail "$from cannot be unpacked"
  fi
  [ -x "$from/tools/clnet-info" ] || fail "$from has no tools/clnet-info: pack first, and carry that along"
  from=$(realpath "$from") out=${OUT:-gpu-results}
  mkdir -p "$out" "$work"/{logs,traces,programs}
  out=$(realpath "$out") work=$(realpath "$work") logs=$work/logs
  bench_seconds=0.2 library_path=$from:$from/lib python=$(command -v python3 || true)
  [ "$divide" -eq 1 ] || bench_seconds=0.01
  [ ! -e "$work/library-path" ] || library_path=$(cat "$work/library-path")
  [ ! -e "$work/only.icd" ] || export OCL_ICD_VENDORS=$work/only.icd
  jobs=$(($(nproc) > 16 ? 15 : $(nproc) > 2 ? $(nproc) - 1 : 2))
  # What the driver compiled is kept for all processes.
  export CLNET_DEVICE=${CLNET_DEVICE:-gpu} CLNET_CACHE_DIR=$work/cache CUDA_CACHE_PATH=$work/driver-cache CUDA_CACHE_MAXSIZE=4294967296
  # Tests find files of the tree and of the build where they were built.
  for target in "$root" "$from"; do
    read -r place
    [ -e "$place" ] || { mkdir -p "$(dirname "$place")" && ln -s "$target" "$place"; } || note "there is no $place: tests that read files of it fail"
  done <"$from/places"
  note "== clnet $(cat "$from/commit"), $(date -u +%FT%TZ), ${chosen:-all steps}, budget $budget s, $jobs at a time"
  while IFS='|' read -r name seconds what; do
    [ -z "$chosen" ] || case ,$chosen, in *,"$name",*) ;; *) continue ;; esac
    if [ $((budget - SECONDS)) -lt 5 ]; then
      note "-- $name: no time left"
      continue
    fi
    local began=$SECONDS
    status=0 step_end=$((SECONDS + (seconds / divide > 3 ? seconds / divide : 3)))
    note "-- $name: $what"
    "step_$name" </dev/null || status=$?
    note "   $((SECONDS - began)) s"
    echo "$library_path" >"$work/library-path"
    keep_results
    [ $status -ne 3 ] || exit 3
  done <<<"$steps"
  note "== $SECONDS s in all"
  keep_results
  printf '======== summary.txt\n'
  cut -c1-170 "$out/summary.txt" | tail -n 160
}

# ---- rehearse

rehearse() {
  local build=$root/build name
  [ $# -eq 0 ] || { [ "$1" = --build ] && [ $# -eq 2 ] && build=$2; } || fail "rehearse knows only --build FOLDER"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  ("$script" pack --build "$build" --into "$folder/kit" --images 600 --model resnet18-infer-b16) || exit 1
  # Few and small items and tests, so that steps end before their limits, also on a busy machine. Nothing is computed, so the
  # self-test finds all solvers broken, which nobody should heed.
  CLNET_QUIRKS=off CLNET_TEST_ELEMENTS=300 NULL_OPENCL_DEVICE=h200 OUT=$folder/out "$script" run --from "$folder/kit" --work "$folder/work" --driver "$build/tests/libnull_opencl.so" \
    --items "resnet18-infer-b1 matmul-512 relu-64m" --tests "softmax conv2d" --divide 4 --budget 105 >"$folder/log" 2>&1 ||
    { local code=$?; cat "$folder/log"; fail "run ended with $code"; }
  local summary=$folder/out/summary.txt
  while IFS='|' read -r name _; do
    # Its line, and then its time.
    awk -v name="-- $name:" 'index($0, name) == 1 { there = !/no time left/ } there && /^   [0-9]+ s$/ { found = 1 } END { exit !found }' "$summary" ||
      { cat "$folder/log"; fail "the summary has no step $name"; }
  done <<<"$steps"
  while read -r name; do
    grep -qE "$name" "$summary" || { cat "$folder/log"; fail "the summary has no line like: $name"; }
  done <<'WANTED'
^driver: .*libnull_opencl.so
^compiler: takes 23 of 23 constructs
^clnet-train, 1 epochs: exit code 0; epoch 1/1
^  [1-9][0-9]* of [0-9]+ checks in
^clnet-op-tests: [1-9][0-9]* of [0-9]+ passed
^clnet-bench: 3 of 3 items
^  launch with an event
^resnet18-infer-b16 on h200: kernels .* 0.00 ms modelled in 0 kinds
^tune: [1-9][0-9]* solvers of [1-9][0-9]* problems
^mode plan
^life_exit: exit code 0
^clnet-fault-tests: [1-9]
^clnet-info --report: exit code (0|124)
^\| matmul-512 \| [0-9]
WANTED
  [ "$(find "$folder/out" -name '*.tar.?z' -size +0 | wc -l)" -ge 2 ] || fail "logs or traces are missing"
  tar -tf "$folder"/out/logs.tar.?z | grep '^logs/smoke.log$' >/dev/null || fail "the archive of logs lacks what was logged"
  [ "$(find "$folder/out" -type f | wc -l)" -le 8 ] || fail "there are more than 8 files of results"
  ! grep -E 'Killed|Terminated|line [0-9]+:' "$folder/log" || fail "bash speaks of ended processes"
  echo "rehearsed in $SECONDS s: $(grep -c '^-- ' "$summary") steps"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
  pack | run | rehearse) "$command" "$@" ;;
  steps) tr '|' '\t' <<<"$steps" ;;
  *) sed -n '2,16s/^# \{0,1\}//p' "$script" >&2; exit 2 ;;
esac

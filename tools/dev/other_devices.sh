#!/bin/sh
# Runs the operations' tests on another OpenCL implementation than PoCL, with the programs that are in build/.
#   tools/dev/other_devices.sh rusticl [option of ctest]...    Mesa's rusticl on llvmpipe (package mesa-opencl-icd); instead of the
#                                                              operations' tests those that the options choose
#   tools/dev/other_devices.sh intel [option of ctest]...      Intel's runtime for CPUs (tools/dev/intel_runtime.sh gets it)
#   tools/dev/other_devices.sh intel-and-pocl                  the tests of evaluations over two devices, on both in one process
#   tools/dev/other_devices.sh platforms                       a training on PoCL, rusticl and Intel's runtime at once: as ranks, and
#                                                              as devices of one process
#   tools/dev/other_devices.sh rusticl|intel self-test [option of clnet-info]...
#   tools/dev/other_devices.sh oclgrind [tests of Catch2]      the checking simulator (package oclgrind), which is some 1000 times
#                                                              slower: without argument it runs a chosen subset
set -eu
cd "$(dirname "$0")/../.."
device=${1:-}
[ $# -eq 0 ] || shift
# The tests that ctest's options choose, and what they skipped: each program counts that by reason when it ends.
run_tests() {
  if [ "${1:-}" = self-test ]; then
    shift
    build/tools/clnet-info --self-test "$@"
    return
  fi
  [ $# -gt 0 ] || set -- -L ops
  ctest --test-dir build --output-on-failure --no-tests=error -j "$(nproc)" -LE nightly "$@"
  awk '/^[0-9]+ skipped: / { n = $1; $1 = ""; count[$0] += n } END { for (why in count) print count[why] why }' \
    build/Testing/Temporary/LastTest.log | sort -rn
}
# Sets Intel's runtime as the only one. Says so and fails where it does not run.
use_intel() {
  runtime=$(tools/dev/intel_runtime.sh) || exit 1
  # shellcheck disable=SC2086,SC2163  # a list of assignments
  export $runtime
  if ! refusal=$(build/tools/clnet-info 2>&1 >/dev/null); then
    echo "Intel's runtime does not run on this processor: $refusal"
    # Everything else that clnet-info may say is a fault.
    case $refusal in *"no OpenCL device found"*) return 1 ;; *) exit 1 ;; esac
  fi
  build/tools/clnet-info | sed -n 's/^ *driver */Intel, driver /p'
}
case $device in
  rusticl)
    export RUSTICL_ENABLE=swrast CLNET_DEVICE=llvmpipe
    run_tests "$@"
    ;;
  intel)
    use_intel || exit 0
    run_tests "$@"
    ;;
  intel-and-pocl)
    use_intel || exit 0
    vendors=$(mktemp -d)
    trap 'rm -rf "$vendors"' EXIT
    cp "$OCL_ICD_VENDORS" /etc/OpenCL/vendors/pocl.icd "$vendors"
    for first in 0:0 1:0; do
      second=$((1 - ${first%:0})):0
      OCL_ICD_VENDORS=$vendors CLNET_DEVICE=$first CLNET_TEST_SECOND=$second CLNET_TEST_PLAIN=1 CLNET_VERIFY=1 \
        build/tests/clnet-op-tests --filenames-as-tags -w NoTests "[#copy_to]"
    done
    ;;
  platforms)
    vendors=$(mktemp -d) names="portable rusticl"
    trap 'rm -rf "$vendors"' EXIT
    cp /etc/OpenCL/vendors/pocl.icd /etc/OpenCL/vendors/rusticl.icd "$vendors"
    if use_intel; then
      cp "$OCL_ICD_VENDORS" "$vendors"
      names="$names intel"
    fi
    # shellcheck disable=SC2086  # a list of words
    OCL_ICD_VENDORS=$vendors RUSTICL_ENABLE=swrast tests/dist/platforms.py build/tools/clnet-info build/tools/clnet-train $names
    ;;
  oclgrind)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # NaN in an output would count as a value. Programs are unoptimised, as the optimiser makes instructions that the simulator does
    # not know, and do not come from the cache for the same reason.
    export CLNET_DEVICE=oclgrind CLNET_CACHE=off CLNET_POISON=0 CLNET_TEST_ELEMENTS="${CLNET_TEST_ELEMENTS:-100}"
    # simulate NAME CHECK TESTS
    simulate() {
      # shellcheck disable=SC2086  # an option or nothing
      oclgrind --build-options -cl-opt-disable --data-races $2 --log "$work/$1" build/tests/clnet-op-tests -w NoTests -d yes "$3" \
        >"$work/$1.tests" 2>&1 || { cat "$work/$1.tests" >&2; return 1; }
      tail -n 2 "$work/$1.tests"
      echo "$1, the slowest: $(grep -E '^[0-9.]+ s: ' "$work/$1.tests" | sort -rn | head -n 5 | paste -s -d ';')"
      [ ! -s "$work/$1" ] || { cat "$work/$1" >&2; return 1; }
    }
    kernels="avg_pool2d,batch_norm in *,conv2d,cross_entropy,layer_norm,matmul,max_pool2d,reduce,softmax"
    if [ $# -gt 0 ]; then
      simulate chosen --uninitialized "$1"
    else
      others="A kernel from source*,Adam and AdamW,argmax*,attention as one operation,concat*,conv1d,conv3d by each solver,conv_transpose2d,ctc_loss"
      others="$others,cumsum,expand,gru_layer,index_select*,interpolate,losses,lp_pool,lstm_layer,max_unpool puts*,pad,permute"
      others="$others,reshape*,scatter*,slice,slice_update and narrow,sort and topk"
      simulate gpu-others --uninitialized "$others" &
      # The kernels for CPUs. Looking for uninitialised values, Oclgrind 21.10 itself crashes on some of their vectors.
      CLNET_VECTOR_WIDTH=4 simulate cpu "" "$kernels,attention as one operation,gru_layer,lstm_layer"
      simulate gpu --uninitialized "$kernels"
      wait $!
    fi
    echo "Oclgrind has nothing to report."
    ;;
  *)
    sed -n '3,11s/^# *//p' "$0" >&2
    exit 2
    ;;
esac

#!/bin/sh
# Unpacks the compilers that tools/dev/offline_compile.py and cpu_loops.py need for some targets, and prints the folder:
#   tools/dev/offline_compilers.sh nvidia amd intel spirv      all of GPUs: 159 MB to download on a bare Debian 12
#   tools/dev/offline_compilers.sh cpu cpu-new                 of CPUs
# Nothing is installed: an installed libclc-19 would drive out Mesa's OpenCL, and Intel's OpenCL would be one more device. Packages come
# from Debian (apt-get download), ptxas from PyPI where CUDA's toolkit is not here, and libraries only where they are not installed. The
# folder is CLNET_OFFLINE_DIR, else clnet-offline in the user's cache; each package is unpacked once.
set -eu
folder=${CLNET_OFFLINE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/clnet-offline}
wheel="nvidia-cuda-nvcc==13.0.88"

tools="" libraries=""
clang19() {
  tools="$tools clang-19 libclang-common-19-dev"
  libraries="$libraries libllvm19 libclang-cpp19"
}
clang15() {
  tools="$tools clang-15 libclang-common-15-dev"
  libraries="$libraries libllvm15 libclang-cpp15"
}
clang14() {
  libraries="$libraries libllvm14 libclang-cpp14 libllvmspirvlib14"
}
for target in "$@"; do
  case $target in
    nvidia) clang19; tools="$tools libclc-19" ;;
    amd) clang19; tools="$tools rocm-device-libs" ;;
    cpu) clang15 ;;
    cpu-new) clang19 ;;
    # ocloc is in intel-opencl-icd, and the compiler that it calls in the others.
    intel) clang14; tools="$tools intel-opencl-icd libigc1 libigdfcl1 libopencl-clang14 libigdgmm12" ;;
    spirv) clang14; tools="$tools clang-14 libclang-common-14-dev llvm-spirv-14 spirv-tools" ;;
    *) sed -n '3,4s/^# *//p' "$0" >&2; exit 2 ;;
  esac
done
# With what these need in turn, and a system without them may lack.
for library in $libraries libedit2 libbsd0 libffi8 libicu72 libxml2 libz3-4; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$library" 2>/dev/null)" = installed ] || tools="$tools $library"
done

mkdir -p "$folder/unpacked" "$folder/root"
cd "$folder"
wanted=""
for package in $tools; do
  case " $wanted " in *" $package "*) continue ;; esac
  [ -e "unpacked/$package" ] || wanted="$wanted $package"
done
if [ -n "$wanted" ]; then
  rm -rf debs
  mkdir debs
  # shellcheck disable=SC2086  # a list of words
  (cd debs && { apt-get download -qq $wanted || { apt-get update -q && apt-get download -qq $wanted; }; }) >&2
  for package in $wanted; do
    dpkg -x debs/"$package"_*.deb root
    dpkg-deb -f debs/"$package"_*.deb Version >"unpacked/$package"
  done
  rm -rf debs
fi

case " $* " in *" nvidia "*)
  if ! command -v ptxas >/dev/null && [ ! -x /usr/local/cuda/bin/ptxas ] && [ "$(cat unpacked/ptxas 2>/dev/null)" != "$wheel" ]; then
    rm -rf wheel
    python3 -m pip download -q --disable-pip-version-check --no-deps --no-cache-dir -d wheel "$wheel" >&2
    python3 -m zipfile -e wheel/*.whl wheel
    mkdir -p root/usr/bin
    find wheel -name ptxas -type f -exec install -m 755 {} root/usr/bin/ptxas \;
    rm -rf wheel
    echo "$wheel" >unpacked/ptxas
  fi
  ;;
esac
pwd

#!/bin/sh
# Unpacks Intel's OpenCL runtime for CPUs, from the packages in which PyPI has it, into a folder of its own, where the system does
# not see it, and prints the variables that make programs use it and nothing else:
#   env $(tools/dev/intel_runtime.sh) build/tools/clnet-info
# The folder is CLNET_INTEL_DIR, else build/intel; it takes 800 MB and is made once.
set -eu
cd "$(dirname "$0")/../.."
packages="intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0 tbb==2023.2.0"
folder=${CLNET_INTEL_DIR:-build/intel}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ "$(cat "$folder/packages" 2>/dev/null)" != "$packages" ]; then
  rm -rf "$folder/wheels" "$folder/lib"
  mkdir -p "$folder/wheels" "$folder/lib"
  # shellcheck disable=SC2086  # a list of words
  python3 -m pip download -q --disable-pip-version-check --no-deps --no-cache-dir -d "$folder/wheels" $packages >&2
  for wheel in "$folder"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$folder/wheels"
  done
  mv "$folder"/wheels/*.data/data/lib/* "$folder/lib/"
  rm -rf "$folder/wheels"
  # Its own loader knows nothing of OCL_ICD_VENDORS.
  rm -f "$folder"/lib/libOpenCL.so*
  echo "$folder/lib/libintelocl.so" >"$folder/intel.icd"
  echo "$packages" >"$folder/packages"
fi
echo "OCL_ICD_VENDORS=$folder/intel.icd"
echo "LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

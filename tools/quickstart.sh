#!/bin/sh
# Everything from a bare Debian 12 or 13 to a result: installs what is missing, builds clnet in build/ and uses it.
#
#   tools/quickstart.sh train [option of clnet-train]...   trains a network on Fashion-MNIST
#   tools/quickstart.sh test [option of ctest]...          builds and runs the tests
#   tools/quickstart.sh build [target]...                  only installs and builds
#
# Packages are installed as root, or with sudo otherwise; elsewhere than on Debian and its children they have to be there.
set -eu

packages="
  g++ cmake ninja-build pkg-config
  opencl-headers opencl-clhpp-headers ocl-icd-opencl-dev pocl-opencl-icd libclblast-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libprotozero-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev
  dataset-fashion-mnist"
# What the tests need besides.
test_packages=catch2

usage() {
  sed -n '4,6s/^# *//p' "$0" >&2
  exit 2
}

fail() {
  echo "quickstart: $*" >&2
  exit 1
}

install_packages() {
  command -v dpkg-query >/dev/null || return 0
  missing=
  for package in $packages; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
      *" installed") ;;
      *) missing="$missing $package" ;;
    esac
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" = 0 ]; then
    as_root=
  elif command -v sudo >/dev/null; then
    as_root=sudo
  else
    fail "neither root nor sudo: have an administrator run apt-get install$missing"
  fi
  echo "quickstart: installing$missing"
  $as_root apt-get update -q
  # shellcheck disable=SC2086  # lists of words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

# build ON|OFF [OPTION]...: with tests, or as it was configured before.
build() {
  tests=$1
  shift
  if [ ! -f build/build.ninja ]; then
    cmake -S . -B build -G Ninja -DCLNET_BUILD_TESTS="$tests"
  elif [ "$tests" = ON ] && grep -q '^CLNET_BUILD_TESTS:BOOL=OFF' build/CMakeCache.txt; then
    cmake -S . -B build -DCLNET_BUILD_TESTS=ON
  fi
  cmake --build build "$@"
}

[ $# -gt 0 ] || usage
command=$1
shift
# clnet-train writes its results where the caller is.
caller=$(pwd)
cd "$(dirname "$0")/.."
case $command in
  train)
    install_packages
    build OFF --target clnet-train
    root=$(pwd)
    cd "$caller"
    exec "$root/build/tools/clnet-train" "$@"
    ;;
  test)
    packages="$packages $test_packages"
    install_packages
    build ON
    # Several at once: most of their time goes into compiling kernels, which takes one core each.
    # Several of -LE would leave out what has all of their labels.
    case " $* " in
      *" -LE "* | *" --label-exclude "*) exec ctest --test-dir build --output-on-failure --no-tests=error -j "$(nproc)" "$@" ;;
    esac
    status=0
    ctest --test-dir build --output-on-failure --no-tests=error -j "$(nproc)" -LE 'sweep|nightly' "$@" || status=$?
    for label in sweep nightly; do
      left_out=$(ctest --test-dir build -N -L $label | sed -n 's/^ *Test *#[0-9]*: /, /p' | tr -d '\n')
      [ -z "$left_out" ] || echo "quickstart: left out: ${left_out#, }. They run with: ctest --test-dir build -L $label"
    done
    exit "$status"
    ;;
  build)
    packages="$packages $test_packages"
    install_packages
    if [ $# -gt 0 ]; then build ON --target "$@"; else build ON; fi
    ;;
  *) usage ;;
esac

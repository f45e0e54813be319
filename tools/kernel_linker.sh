#!/bin/sh
# The linker that drivers for CPUs find when clnet-build-kernels compiles (as `ld`, in the folder `linker` beside that). They have
# each kernel searched for in four libraries of which it takes nothing, and that is most of the linker's time. So they are left out
# where nothing is missing.
(
  for word; do
    shift
    case $word in
      -l* | -L* | --as-needed | --no-as-needed) ;;
      *) set -- "$@" "$word" ;;
    esac
  done
  exec ld --no-undefined "$@"
) >/dev/null 2>&1 || exec ld "$@"

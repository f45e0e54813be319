#!/bin/sh
# Writes each block of C++ in docs/training.md to a file in FOLDER, without lines that only say "...", named by its heading and its
# number there; and recipes.inc, which lists the names as strings. tests/models/recipes.cpp runs them.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1"
awk -v folder="$1" '
  /^## / && !inside { name = tolower(substr($0, 4)); gsub(/[^a-z0-9]+/, "_", name); number = 0 }
  /^```/ {
    if (inside) { close(file); inside = 0; next }
    skipping = !skipping
    if (skipping && $0 == "```cpp") {
      inside = 1; skipping = 0
      recipe = name "_" ++number
      file = folder "/" recipe ".inc"
      printf "" > file
      names = names "\"" recipe "\",\n"
    }
    next
  }
  inside && $0 != "..." { print > file }
  END { printf "%s", names > (folder "/recipes.inc") }
' docs/training.md

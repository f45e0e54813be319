#!/bin/sh
# Writes each block of C++ in docs/guide/*.md to a file in FOLDER, without lines that only say "...", named by its page, its heading and
# its number there; and recipes.inc, which lists the names as strings. tests/models/recipes.cpp runs them. A whole program becomes a
# function NAME::program(), whose end returns 0.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1"
rm -f "$1"/*.inc
awk -v folder="$1" '
  function put(line) { print line > file }
  FNR == 1 {
    page = FILENAME; sub(/^.*\//, "", page); sub(/\.md$/, "", page); gsub(/[^a-z0-9]+/, "_", page)
    name = page; number = 0; inside = 0; skipping = 0
  }
  /^## / && !inside && !skipping {
    name = tolower(substr($0, 4)); gsub(/[^a-z0-9]+/, "_", name); sub(/_$/, "", name)
    name = page "_" name; number = 0
  }
  /^```/ {
    if (inside) {
      if (program) put("}  // namespace")
      close(file); inside = 0; next
    }
    skipping = !skipping
    if (skipping && $0 == "```cpp") {
      inside = 1; skipping = 0; program = 0; begun = 0
      recipe = name "_" ++number
      file = folder "/" recipe ".inc"
      printf "" > file
      names = names "\"" recipe "\",\n"
    }
    next
  }
  !inside || $0 == "..." { next }
  # A program begins with its includes, which recipes.cpp has already.
  !begun && /^#include / { program = 1; begun = 1; put("namespace " recipe " {"); next }
  { begun = 1 }
  program && /^#include / { next }
  program && /^int main\(\) \{$/ { put("int program() {"); main = 1; next }
  program && main && /^}$/ { put("  return 0;"); main = 0 }
  { put($0) }
  END { printf "%s", names > (folder "/recipes.inc") }
' docs/guide/*.md

#!/bin/sh
# readme_program.sh [N]: prints a C++ program of README.md: its Nth block of C++, the first by default.
set -eu
cd "$(dirname "$0")/../.."
awk -v wanted="${1:-1}" '/^```/ { if (inside) exit; inside = ($0 == "```cpp" && ++number == wanted); next } inside' README.md

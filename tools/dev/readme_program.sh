#!/bin/sh
# Prints the C++ quick start of README.md: its first block of C++.
set -eu
cd "$(dirname "$0")/../.."
awk '/^```/ { if (inside) exit; inside = ($0 == "```cpp"); next } inside' README.md

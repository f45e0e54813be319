#!/bin/sh
# Writes the right column of the tables in docs/reference/pytorch.md to FILE, each line as line("...", [&, x]() mutable { read, ...; }), where `read` computes
# the tensors that follow. tests/ops/catalogue/pytorch.cpp runs them.
set -eu
cd "$(dirname "$0")/../.."
awk -F '`' '/^\| `/ { text = $4; gsub(/"/, "\\\"", text); printf "line(\"%s\", [&, x]() mutable { %s%s%s; });\n", text, $4 ~ /^(for|auto|Autocast|DeviceScope) / ? "" : "read, ", $4, $4 ~ /^for / ? " {}" : "" }' docs/reference/pytorch.md > "$1"

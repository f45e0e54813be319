#!/usr/bin/env python3
"""Checks that no file includes one from a floor above its own (docs/architecture.md, "Floors").

check_floors.py [ROOT]: reads include/, lib/, tools/ and tests/ under ROOT (default: this repository), prints a line for every
include that breaks a rule and ends with 1 if there was one.
"""

import pathlib
import re
import sys

# The floors from the bottom. Folders that share a number may include each other, except base's two neighbours below.
FLOORS = {
    "base": 0,
    "cl": 1,
    "graph": 2,
    "exec": 3,
    "ops": 4,
    "autograd": 5,
    "nn": 6, "optim": 6, "data": 6, "train": 6, "io": 6, "onnx": 6, "dist": 6,
    "capi": 7, "tools": 7, "tests": 7,
}
# The device's floor and the graph's don't know each other: only exec joins them.
STRANGERS = {("graph", "cl"), ("cl", "graph")}
# Floors that know no OpenCL.
NO_OPENCL = {"base", "graph"}
# The floor that each public header speaks for.
HEADERS = {
    "error.h": "base", "export.h": "base", "version.h": "base",
    "device.h": "cl",
    "autocast.h": "graph", "debug.h": "graph", "dtype.h": "graph", "shape.h": "graph", "tensor.h": "graph",
    "opencl.h": "exec",
    "autograd.h": "autograd",
    "compile.h": "exec",
    "kernel.h": "ops", "ops.h": "ops",
    "data.h": "data", "io.h": "io", "models.h": "nn", "nn.h": "nn", "optim.h": "optim", "train.h": "train",
    "clnet.h": "tools",
}
# The only public header that includes OpenCL's.
OPENCL_HEADER = "include/clnet/opencl.h"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SYSTEM_OPENCL = re.compile(r"^(CL/|OpenCL/|clblast)")


def floor_of(path):
    """The floor of a file by its path from the root, or None for one that is in no floor."""
    parts = path.split("/")
    if parts[:2] == ["include", "clnet"] and len(parts) == 3:
        return HEADERS.get(parts[2])
    if parts[:2] == ["include", "clnet"] and len(parts) == 4 and parts[2] in ("nn", "ops", "optim"):
        return parts[2]
    if parts[0] == "lib" and len(parts) > 2:
        return parts[1] if parts[1] in FLOORS else None
    return parts[0] if parts[0] in ("tools", "tests") else None


def target_of(quote, name):
    """The path from the root of a project file that an include names, or None for a file of somebody else's."""
    if name.startswith("clnet/"):
        return "include/" + name
    return name if quote == '"' else None


def problems(path, text):
    """What is wrong with the includes of one file."""
    floor = floor_of(path)
    if floor is None:
        yield f"{path}: is in no floor that tools/dev/check_floors.py knows"
        return
    for match in INCLUDE.finditer(text):
        quote, name = match.groups()
        where = f"{path}:{text.count(chr(10), 0, match.start(1)) + 1}"
        if quote == "<" and SYSTEM_OPENCL.match(name):
            if path.startswith("include/") and path != OPENCL_HEADER:
                yield f"{where}: <{name}>: {OPENCL_HEADER} is the only public header that includes OpenCL's"
            elif floor in NO_OPENCL:
                yield f"{where}: <{name}>: {floor} knows no OpenCL"
            continue
        target = target_of(quote, name)
        if target is None:
            continue
        if path.startswith("include/") and not target.startswith("include/"):
            yield f'{where}: "{name}": a public header includes an internal one'
            continue
        other = floor_of(target)
        if other is None:
            yield f'{where}: "{name}": say clnet/<header>.h or lib/<floor>/<header>.h'
        elif FLOORS[other] > FLOORS[floor]:
            yield f'{where}: "{name}": {floor} (floor {FLOORS[floor]}) includes {other} (floor {FLOORS[other]})'
        elif (floor, other) in STRANGERS:
            yield f'{where}: "{name}": {floor} and {other} do not know each other'


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    files = [f for top in ("include", "lib", "tools", "tests") for f in sorted((root / top).rglob("*")) if f.suffix in (".h", ".cpp")]
    if not files:
        sys.exit(f"{root}: no C++ files")
    wrong = [p for f in files for p in problems(f.relative_to(root).as_posix(), f.read_text(encoding="utf-8"))]
    for line in wrong:
        print(line)
    print(f"floors: {len(files)} files, {len(wrong)} wrong includes")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

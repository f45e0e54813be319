#!/usr/bin/env python3
"""How long a build takes, file by file: builds everything anew in a folder of its own, without a compiler's cache.

  tools/dev/build_time.py [--jobs 2] [--build FOLDER] [--markdown] [CMAKE OPTION...]

prints the processor time of the library with clnet-train, of all else and of each unit, and how long both took.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Appends the processor time of a command and the name of its output to $BUILD_TIMES.
LAUNCHER = """#!/bin/bash
out= before=
for word in "$@"; do [ "$before" != -o ] || out=$word; before=$word; done
TIMEFORMAT="%U %S $out"
exec 3>&2
{ time "$@" 2>&3; } 2>>"$BUILD_TIMES"
"""


def read_times(text):
    """Lines of seconds of user and system and a name: {name: seconds}."""
    times = {}
    for line in text.splitlines():
        user, system, name = line.split(" ", 2)
        times[name] = times.get(name, 0.0) + float(user) + float(system)
    return times


def short(name):
    """The object's path without what CMake adds."""
    for cut in ("CMakeFiles/", ".dir", "/Unity/unity_", ".cxx.o", "_cxx", ".cpp.o"):
        name = name.replace(cut, "/" if cut == "/Unity/unity_" else "")
    return name


def run(command, **rest):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **rest)
    if result.returncode != 0:
        sys.exit(f"build_time: {' '.join(map(str, command))} ended with {result.returncode}:\n{result.stdout[-4000:]}")


def build(folder, target, jobs, log):
    """(processor seconds by file, seconds on the clock) of one more target."""
    log.write_text("")
    begun = time.monotonic()
    run(["cmake", "--build", folder, "--parallel", str(jobs), *(["--target", target] if target else [])],
        env={**os.environ, "BUILD_TIMES": str(log)})
    return read_times(log.read_text()), time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, help="a new folder, which is kept")
    parser.add_argument("--markdown", action="store_true", help="the units as a table")
    options, cmake = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        launcher, log = work / "launcher", work / "times"
        launcher.write_text(LAUNCHER)
        launcher.chmod(0o755)
        folder = options.build or work / "build"
        if folder.exists() and any(folder.iterdir()):
            sys.exit(f"build_time: {folder} has other things in it")
        run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", *cmake])
        parts = [("the library and clnet-train", *build(folder, "clnet-train", options.jobs, log)),
                 ("all else", *build(folder, None, options.jobs, log))]
    for name, times, clock in parts:
        print(f"{name}: {sum(times.values()):.0f} s of processor time in {len(times)} units, {clock:.0f} s with {options.jobs} jobs")
    if options.markdown:
        print("\n| unit | s |\n|---|---|")
    for name, times, _ in parts:
        for unit, seconds in sorted(times.items(), key=lambda entry: -entry[1]):
            if seconds >= 0.05:
                print(f"| `{short(unit)}` | {seconds:.1f} |" if options.markdown else f"{seconds:8.1f}  {short(unit)}")


if __name__ == "__main__":
    main()

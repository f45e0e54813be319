#!/usr/bin/env python3
"""Writes docs/guide/environment.md: every environment variable that clnet, its programs, tests and scripts read.

  tools/dev/environment_page.py [--check]   --check: writes nothing, prints a line for every fault and ends with 1 if there was one

clnet's own variables are rows of the table in lib/base/env.cpp, whose comments are the headings here. What else the code reads
stands in OTHERS and TESTS below: a name that is read and in no table is a fault, and so is one in a table that nothing reads.
"""

import argparse
import pathlib
import re
import subprocess
import sys

from generated_page import write_or_compare

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/guide/environment.md"
TABLE = "lib/base/env.cpp"

# Variables of the system and of drivers that clnet and its programs read.
OTHERS = {
    "XDG_CACHE_HOME": "where caches are, clnet's and drivers'",
    "HOME": "the same, where `XDG_CACHE_HOME` is not set",
    "COMPILER_PATH": "folders where the processes that compile kernels for PoCL look for a linker first",
    "POCL_CACHE_DIR": "where PoCL keeps compiled kernels",
    "POCL_KERNEL_CACHE": "0: PoCL keeps none",
    "CUDA_CACHE_PATH": "where NVIDIA's driver keeps compiled programs; `clnet-info --cache` shows it",
    "MESA_SHADER_CACHE_DIR": "the same of Mesa",
    "NEO_CACHE_DIR": "the same of Intel's driver",
    "OMPI_COMM_WORLD_SIZE": "set by Open MPI's launcher: its module joins the processes",
    "PMI_SIZE": "set by MPICH's launcher and Slurm's pmi2: MPICH's module joins the processes",
    "PMI_RANK": "the same",
    "PMIX_RANK": "set by launchers for either",
    "SLURM_STEP_NUM_TASKS": "set by Slurm's srun: above 1, the process is one of several",
    "SLURM_MPI_TYPE": "what Slurm offers, which tells one MPI from the other",
}
# Variables that tests and scripts of the project read.
TESTS = {
    "CLNET_ACCEPTANCE_DIR": "the project's acceptance data; tests that want them skip without",
    "CLNET_ONNX_EXPORT_DIR": "where tests of `onnx::save` leave their files, for `tools/dev/onnx_export.py`",
    "CLNET_GOLDEN": "`write`: the tests of generated kernels write tests/golden instead of comparing with it",
    "CLNET_INTEL_DIR": "where Intel's runtime for CPUs is unpacked; unset: build/intel",
    "CLNET_KILL_ROUNDS": "how often the test of kill -9 kills",
    "CLNET_OFFLINE_DIR": "where compilers for devices that are not here are unpacked; unset: clnet-offline in the user's cache",
    "CLNET_SWEEP_STEPS": "steps of the memory limit from 1 GiB to 1 MiB, in the test of little memory",
    "CLNET_TEST_ALL": "1: all dtypes and cases, not a sample of them",
    "CLNET_TEST_ELEMENTS": "leaves out cases with more elements in their inputs",
    "CLNET_TEST_EMPTY_CACHES": "set by a test for the process that it starts",
    "CLNET_TEST_ERRORS": "set: prints the largest errors that the tests of dtypes and functions find",
    "CLNET_TEST_OPTIMIZED": "set: kernels of tests are optimised, whatever `CLNET_TEST_PLAIN` says",
    "CLNET_TEST_PLAIN": "set: kernels of tests are built without optimisation",
    "CLNET_TEST_SECOND": "the second device of tests that take two",
    "CLNET_WRITE_DOCS": "1: the tests write the documents that they check",
    "CLNET_WRITE_GOLDEN": "1: the test of exported functions writes its list",
    "FAULT_CALL": "with libopencl_faults.so: the OpenCL call that fails",
    "FAULT_NUMBER": "which of these calls fails",
    "FAULT_CODE": "the code that it returns",
    "FAULT_ABORT": "kernels over which the compiler crashes",
    "NIGHTLY_RANDOM_SECONDS": "seconds of random programs in .ci/nightly",
    "NULL_OPENCL_DEVICE": "the device that the null driver plays",
    "NULL_OPENCL_DEVICES": "how many of them it has",
    "NULL_OPENCL_DUMP": "a folder where the null driver writes the programs that it builds",
    "NULL_OPENCL_KERNEL_GROUP": "the largest work-group of kernels on the null driver",
}

CXX_READ = re.compile(r'(?:\bgetenv|\benv::\w+)\("(\w+)"|\bvalue\("([A-Z][A-Z_]+)"\)')
SH_READ = re.compile(r"\$\{?((?:CLNET|FAULT|NIGHTLY|NULL_OPENCL)_[A-Z_]+)|\$ENV\{([A-Z_]+)\}")
PY_READ = re.compile(r'os\.environ(?:\.get\(|\[)"((?:CLNET|FAULT|NIGHTLY|NULL_OPENCL)_[A-Z_]+)"')
# Set by the test that reads it again, or no variable of the environment.
IGNORED = {"CLNET_NO_SUCH_THING", "END_STAYS", "END_AFTER", "PATH"}

INTRODUCTION = """\
# Environment variables

This page lists all environment variables that clnet reads, with their values and meaning. They hold for every program that uses the
library; `clnet-info --env` prints them with their present values. `clnet-info --json --env` does so for programs.

```sh
CLNET_DEVICE=cpu CLNET_MEMORY_LIMIT=2G clnet-train --epochs 1
```

An empty variable counts as unset. A value that a variable cannot have is an `Error` with one line that names the variable, the value and
the expected values. It is thrown at the first use of a device, never before `main`. Sizes in bytes may end in K, M, G or T. This page is
generated by `tools/dev/environment_page.py` from the table in the source.
"""


def text_of(parts):
    """A C++ string of several literals."""
    return "".join(part.replace(r"\"", '"').replace(r"\\", "\\") for part in re.findall(r'"((?:[^"\\]|\\.)*)"', parts))


def rows(source):
    """(heading, name, values, meaning) of the rows of TABLE."""
    table = re.search(r"constexpr std::array variables\{\n(.*?)\n\};", source, re.DOTALL)
    if not table:
        raise SystemExit(f"{TABLE}: has no table")
    literal = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
    row = re.compile(r"// ([^\n]+)|Variable\{\s*" + r",\s*".join([literal] * 3))
    heading = None
    for match in row.finditer(table[1]):
        if match[1]:
            heading = match[1]
        elif heading is None:
            raise SystemExit(f"{TABLE}: no heading stands above {text_of(match[2])}")
        else:
            yield heading, *(text_of(match[group]) for group in (2, 3, 4))


def cell(text):
    return text.replace("|", r"\|")


def sentence(text):
    return text[0].upper() + text[1:]


def page(table):
    parts, last = [INTRODUCTION], None
    for heading, name, values, meaning in table:
        if heading != last:
            parts.append(f"\n## {heading}\n\n| variable | values | meaning |\n|---|---|---|\n")
            last = heading
        parts.append(f"| `{name}` | {cell(values)} | {cell(sentence(meaning))} |\n")
    for heading, before, others in (
            ("Variables of drivers and the system", "clnet and its programs read these, too.", OTHERS),
            ("Tests and scripts", "Only the project's own tests and scripts read these.", TESTS)):
        parts.append(f"\n## {heading}\n\n{before}\n\n| variable | meaning |\n|---|---|\n")
        parts.extend(f"| `{name}` | {cell(sentence(meaning))} |\n" for name, meaning in others.items())
    return "".join(parts)


def read_by(path, text):
    """The variables that one file reads."""
    if path.endswith((".cpp", ".h")):
        pattern = CXX_READ
    elif path.endswith(".py"):
        pattern = PY_READ
    elif path.endswith((".sh", ".cmake")) or path.startswith(".ci/"):
        pattern = SH_READ
    else:
        return set()
    return {name for match in pattern.finditer(text) for name in match.groups() if name}


def problems(own, read):
    """Names in no table, by the files that read them, and names that nothing reads."""
    known = own | set(OTHERS) | set(TESTS)
    for name in sorted(set(read) - known - IGNORED):
        yield f"{read[name]}: reads {name}, which stands in no table of tools/dev/environment_page.py or {TABLE}"
    for name in sorted(known - set(read)):
        yield f"{name}: stands in a table, and nothing reads it"
    for name in sorted(own & (set(OTHERS) | set(TESTS))):
        yield f"{name}: stands in two tables"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the page differs or a variable is in no table")
    check = parser.parse_args().check
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "lib", "tools", "tests", "examples", ".ci"], capture_output=True, text=True,
                            check=False)
    paths = [path for path in listed.stdout.split("\0") if path]
    if not paths:
        paths = [str(file.relative_to(ROOT)) for top in ("lib", "tools", "tests", "examples", ".ci") for file in (ROOT / top).rglob("*") if file.is_file()]
    read = {}
    for path in sorted(paths):
        if path.startswith("tools/dev/environment_page"):
            continue
        if (ROOT / path).is_file() and (path.startswith(".ci/") or path.endswith((".cpp", ".h", ".py", ".sh", ".cmake"))):
            for name in read_by(path, (ROOT / path).read_text(encoding="utf-8")):
                read.setdefault(name, path)
    table = list(rows((ROOT / TABLE).read_text(encoding="utf-8")))
    wrong = list(problems({name for _, name, _, _ in table}, read))
    wrong += write_or_compare(ROOT, PAGE, page(table), check, "tools/dev/environment_page.py")
    for line in wrong:
        print(line)
    print(f"environment: {len(table)} variables of clnet, {len(OTHERS) + len(TESTS)} others, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

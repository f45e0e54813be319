#!/usr/bin/env python3
"""Compiles clnet's kernels for CPUs that are not there, and compares what their hot loops do with what is recorded.

    tools/dev/cpu_loops.py                                           the networks' programs, one of each kind, for all targets
    tools/dev/cpu_loops.py --targets znver3,skylake-avx512,arm64     ... for three
    tools/dev/cpu_loops.py --all                                     every program of the networks and of products, convolutions and the like
    tools/dev/cpu_loops.py --all --write-limits                      record what was found (cpu_limits.txt)
    tools/dev/cpu_loops.py --targets znver3 --table FOLDER           programs that the null driver dumped (NULL_OPENCL_DUMP=FOLDER)

The programs are those that a build's clnet-bench makes on the null driver, which claims to be a CPU with vectors as wide as the target's;
of these the products, convolutions, recurrences, attention and optimizers. clang compiles them with PoCL's flags.
A line and exit code 1 for: a program that does not compile; a kernel whose hot loop has more loads and stores for each multiply-add, more
registers or more spills than recorded, or narrower vectors; more spills in another of its loops that multiply and add; with --all, recorded
kinds of kernels that are not there any more.
What was compiled before is not compiled again (CLNET_OFFLINE_DIR, else the user's cache). bench/notebook/2026-11-devices.md says more.
"""

import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

from cpu_targets import TARGETS, CpuCompiler, kernel_names
from offline_compile import Programs, common_arguments, compile_all, compile_errors, concluded, items_of, parsed, run_items, unpacked
from offline_limits import cell_numbers, limits_text, other_versions, read_limits, read_tables, table_of, take_over, texts
from offline_targets import Failed

LIMITS = pathlib.Path(__file__).with_name("cpu_limits.txt")
HOT = re.compile(r"matmul|conv|recurrent|attention|optimizer_update")
# Items of clnet-bench that are one operation of those.
SINGLE = re.compile(r"(matmul|linear|conv|depthwise|adam)\S*")
# Of a program's defines: what makes another loop of it.
SIZES = {"VW": "lanes", "ROWS": "rows", "VECTORS": "vectors", "COLUMNS": "columns", "OUTS": "outs", "INS": "ins", "TAPS": "taps", "TILE": "tile",
         "UNITS": "units", "WIDTH": "width", "VALUES": "values", "KH": "kh", "KW": "kw", "STEP": "step", "TAP_ROWS": "tap_rows", "CELL": "cell",
         "RULE": "rule"}
FLAGS = ("TRANSPOSED", "SWAPPED", "FUSED", "FLIP", "UNROLLED", "BACKWARD", "BLOCKS")

HEAD = """\
# What tools/dev/cpu_loops.py found, and fails on more of; bench/notebook/2026-11-devices.md explains it, and
#   tools/dev/cpu_loops.py --all --write-limits
# writes it anew. The worst of a kind of kernels: loads and stores for each multiply-add of the hot loop / registers of vectors in it x lanes of
# the multiply-adds; a number behind another / counts the spills in that loop, one behind + those of the worst other loop.
"""


@dataclasses.dataclass(frozen=True)
class LoopLimit:
    """The worst of a kind of kernels."""

    memory: float  # loads and stores for each multiply-add
    registers: int
    lanes: int
    spills: int = 0
    other_spills: int = 0

    @staticmethod
    def of(kernel):
        return LoopLimit(round(kernel.memory / kernel.multiply_adds, 2), kernel.registers, kernel.lanes, kernel.spills, kernel.other_spills)

    def worse(self, other):
        if other is None:
            return self
        return LoopLimit(max(self.memory, other.memory), max(self.registers, other.registers), min(self.lanes, other.lanes),
                         max(self.spills, other.spills), max(self.other_spills, other.other_spills))

    def text(self):
        return (f"{self.memory:.2f}/{self.registers}x{self.lanes}" + (f"/{self.spills}" if self.spills else "")
                + (f"+{self.other_spills}" if self.other_spills else ""))

    @staticmethod
    def parse(text):
        return LoopLimit(*cell_numbers(r"(\d+\.\d+)/(\d+)x(\d+)(?:/(\d+))?(?:\+(\d+))?", text))


@dataclasses.dataclass
class Limits:
    kernels: dict = dataclasses.field(default_factory=dict)  # (kind, target) -> LoopLimit; None: no loop multiplies and adds
    versions: dict = dataclasses.field(default_factory=dict)  # target -> its compiler

    @staticmethod
    def parse(text):
        tables, _, versions = read_tables(text, {"kernel": LoopLimit.parse})
        return Limits(tables["kernel"], versions)

    def table(self):
        cells = {key: limit for key, limit in self.kernels.items() if limit}
        return table_of("kernel", texts(cells), [target for target in TARGETS if any(target == column for _, column in cells)])

    def text(self):
        return limits_text(HEAD, [self.table()], self.versions)

    def replace(self, found):
        take_over(self.kernels, {key: limit for key, limit in found.kernels.items() if limit})
        self.versions.update(found.versions)


def problems(found, recorded):
    """A line for everything that is worse than recorded."""
    lines = []
    for (kind, target), result in found.kernels.items():
        limit, where = recorded.kernels.get((kind, target)), f"{target}: {kind}"
        if result is None:
            lines += [f"{where}: no loop multiplies and adds any more"] if limit else []
            continue
        if limit is None:
            lines.append(f"{where}: is not recorded (--all --write-limits)")
            continue
        if result.memory > limit.memory:
            lines.append(f"{where}: {result.memory:.2f} loads and stores for each multiply-add of the hot loop, {limit.memory:.2f} are recorded")
        if result.registers > limit.registers:
            lines.append(f"{where}: {result.registers} registers in the hot loop, {limit.registers} are recorded")
        if result.lanes < limit.lanes:
            lines.append(f"{where}: multiply-adds of {result.lanes} lanes in the hot loop, {limit.lanes} are recorded")
        if result.spills > limit.spills:
            lines.append(f"{where}: {result.spills} spills in the hot loop, {limit.spills} are recorded")
        if result.other_spills > limit.other_spills:
            lines.append(f"{where}: {result.other_spills} spills in another loop, {limit.other_spills} are recorded")
    return lines + (other_versions(found.versions, recorded.versions) if lines else [])


def gone(found, recorded):
    """A line for each target with recorded kinds of kernels that a whole run did not find: under another name a kind may be worse unseen."""
    lines = []
    for target in found.versions:
        kinds = sorted(name for name, column in recorded.kernels.keys() - found.kernels.keys() if column == target)
        if kinds:
            rest = f" and {len(kinds) - 3} more" if len(kinds) > 3 else ""
            lines.append(f"{target}: recorded, but not found any more (--all --write-limits): {', '.join(kinds[:3])}{rest}")
    return lines


def kind(kernel, text):
    """What a kernel's limits go by: its name, its tile as the program's defines tell it, and what is stored in fewer bits."""
    defines = {}
    for line in text.replace("\\\n", " ").splitlines():
        define = re.match(r"#define (\w+) ?(.*)", line)
        if define:
            defines[define[1]] = define[2]
        elif not line.startswith("// -"):
            break  # the kernel's own lines begin
    sizes = [f"{short}={defines[name]}" for name, short in SIZES.items() if name in defines]
    flags = [name.lower() for name in FLAGS if name in defines]
    halves = sorted({value for name, value in defines.items() if name.startswith("TYPE_") and value in ("f16", "bf16")})
    return kernel + "{" + ",".join(sizes + flags + halves) + "}"


def hot_programs(programs, every):
    """Those with a kernel that counts; every one, or of each kind the longest."""
    hot, kinds = Programs(), set()
    for name, text in sorted(programs.texts.items(), key=lambda item: (-len(item[1]), item[0])):
        own = {kind(kernel, text) for kernel in kernel_names(text) if HOT.match(kernel)}
        if own and (every or not own <= kinds):
            hot.texts[name] = text
        kinds |= own
    return hot


def worst(programs, results):
    """Kind -> the worst of its kernels; None: none of them has a loop that multiplies and adds."""
    found = {}
    for name, kernels in results.items():
        for kernel, result in ({} if isinstance(kernels, str) else kernels).items():
            key = kind(kernel, programs.texts[name])
            found[key] = LoopLimit.of(result).worse(found.get(key)) if result.multiply_adds else found.get(key)
    return found


def dump(options, device, folder):
    """The programs of the items that are asked for, made by several processes."""
    items = options.networks + (items_of(options.build, SINGLE) if options.all else [])
    parts = [items[i::options.jobs] for i in range(options.jobs) if items[i::options.jobs]]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda part: run_items(options.build, device, part[1], folder / str(part[0])), enumerate(parts)))
    programs = Programs()
    for given in options.folders or folder.glob("*"):
        programs.add(given)
    return programs


def main():
    parser = common_arguments(__doc__, TARGETS, LIMITS)
    parser.add_argument("--all", action="store_true", help="every program, and those of single products, convolutions and optimizers")
    options = parsed(parser, TARGETS, every="all")
    options.all &= not options.folders
    recorded = read_limits(options.limits, Limits.parse, may_lack=options.write_limits)
    folder = unpacked(options.targets)
    compiler, found, failures, programs = CpuCompiler(folder), Limits(), [], {}
    with tempfile.TemporaryDirectory() as temporary:
        for target in options.targets:
            device = options.device or target.device
            if device not in programs:
                programs[device] = hot_programs(dump(options, device, pathlib.Path(temporary) / device), options.all or options.folders)
            results = compile_all(programs[device], target, compiler, folder / "results", options.jobs)
            failures += compile_errors(target, results) if results else [f"{target.name}: there are no programs to compile"]
            kernels = worst(programs[device], results)
            found.kernels.update({(name, target.name): kernel for name, kernel in kernels.items()})
            found.versions[target.name] = compiler.version(target.maker)
            hot = [kernel for kernel in kernels.values() if kernel]
            print(f"{target.name:15} {len(results):4} programs ({device}): {sum(isinstance(result, str) for result in results.values())} do not compile, "
                  f"{sum(kernel.spills > 0 for kernel in hot)} of {len(hot)} kinds of hot loops spill", flush=True)
    return concluded(options, found, recorded, failures, problems(found, recorded) + (gone(found, recorded) if options.whole else []))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, subprocess.CalledProcessError) as failure:
        print(f"cpu_loops: {failure}", file=sys.stderr)
        sys.exit(1)

#!/usr/bin/env python3
"""Compiles clnet's programs for GPUs that are not there, and compares what comes of it with what is recorded.

    tools/dev/offline_compile.py                                     the networks' programs for all targets
    tools/dev/offline_compile.py --targets sm_86,gfx1100,spirv       ... for three
    tools/dev/offline_compile.py --operations                        the operation tests' programs besides
    tools/dev/offline_compile.py --write-limits                      record what was found (offline_limits.txt)
    tools/dev/offline_compile.py --table FOLDER                      programs that the null driver dumped (NULL_OPENCL_DUMP=FOLDER)

The programs are those that a build's clnet-bench and clnet-op-tests make on the null driver, which claims to be the target's GPU.
A line and exit code 1 for: a program that does not compile; a kernel that spills more than recorded; a kernel of the networks' programs
with over 8 registers more, a lower occupancy or a narrower SIMD width than recorded; a network with more launches or bytes in a step;
a product's or convolution's loop that does not do what offline_loops.py wants of it.
What was compiled before is not compiled again (CLNET_OFFLINE_DIR, else the user's cache). bench/notebook/2026-11-devices.md says more.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from offline_limits import KernelLimit, Limits, Step, problems
from offline_loops import REGISTERS, below_bars, units_below_bars
from offline_targets import TARGETS, Compilers, Failed

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMITS = ROOT / "tools/dev/offline_limits.txt"
# Items of clnet-bench that are networks, in whatever sizes of batches, and a product by matrix units. Others launch what one of these
# does: -compiled is -infer by compile(), and -forward of images is -infer without the copies from and to the host.
# The batch of one rank has the programs of a whole one in other sizes.
NETWORK = re.compile(r"(?!resnet18-train-b8$)\S+-(train|infer|generate|gradient)-b\d+(-f16)?|(lstm|gru)-\d+-forward-b\d+|(lstm-by-hand|attention-step)-\d+-t\d+-b\d+|"
                     r"matmul-2048-f16")
# Products by the ways in which operands lie and convolutions of 3x3, in the largest tile: their loops have bars (offline_loops.py).
LOOPS = ("matmul-2048", "linear-3136-128-b64-forward", "linear-3136-128-b64-backward-weights", "conv-256-256-14-b16-*")
LARGEST = ",".join(f"{op}:gpu{{m=128,n=128}}" for op in ("matmul", "conv2d", "conv2d_backward_data", "conv2d_backward_weights"))
PACKED_LOOPS = ("conv-256-256-14-b16-forward", "conv-256-256-14-b16-backward-data")
LARGEST_PACKED = ",".join(f"{op}:packed_gpu{{m=128,n=128}}" for op in ("conv2d", "conv2d_backward_data"))
# Tests that wait for a driver that computes.
WAITING = {"cl_context"}
# What tests' programs call that are wrong on purpose.
WRONG_ON_PURPOSE = re.compile(r"\b(nonsense|undeclared_name)\b")


class Programs:
    """Programs that the null driver dumped, each once, with the largest work-group that each kernel was launched with."""

    def __init__(self):
        self.texts = {}
        self.groups = collections.defaultdict(dict)

    def add(self, folder):
        for path in sorted(folder.glob("*.cl")):
            self.texts[path.stem] = path.read_text(errors="replace")
        for line in launches(folder):
            program, kernel, _, local, of_arguments = line.split()
            items = 1
            for size in local.split("x"):
                items *= int(size)
            known = self.groups[program].get(kernel, (0, 0))
            self.groups[program][kernel] = max(known, (items or 256, int(of_arguments)))


    def of(self, target):
        """Without what the device that they were made for has, and the target has not: those for matrix units, and ways of sub-groups."""
        result = Programs()
        result.groups = self.groups
        for name, text in self.texts.items():
            unit = re.search(r"^#define MATRIX_UNIT_(\w+) ", text, re.M)
            if not unit or unit[1] == target.units:
                result.texts[name] = re.sub(rf"^#define SUB_GROUPS_(?!{target.sub_groups or '-'} )\w+ .*\n", "", text, flags=re.M)
        return result


def launches(folder):
    """A line each, without the arguments that are numbers: of those some change from step to step."""
    path = folder / "launches"
    return [" ".join(line.split()[:5]) for line in path.read_text().splitlines()] if path.exists() else []


def period(lines):
    """The shortest sequence that the second half of the lines repeats: a step, as every run makes several. None: nothing repeats."""
    half = lines[len(lines) // 2:]
    # The length of the longest end that is also a beginning, as of Knuth, Morris and Pratt.
    border = [0] * len(half)
    for i in range(1, len(half)):
        length = border[i - 1]
        while length and half[i] != half[length]:
            length = border[length - 1]
        border[i] = length + (half[i] == half[length])
    shortest = len(half) - border[-1] if half else 0
    return half[-shortest:] if 0 < 2 * shortest <= len(half) else None


def on_null_driver(build, device, **variables):
    """An environment in which nothing but the device decides."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("CLNET_")}
    return {**others, "OCL_ICD_VENDORS": str(build / "tests/null_opencl.icd"), "NULL_OPENCL_DEVICE": device, "CLNET_CACHE": "off",
            "CLNET_TUNE": "off", "CLNET_QUIRKS": "off", **variables}


def items_of(build, wanted=NETWORK):
    """What clnet-bench has: all networks, or what else is wanted."""
    items = subprocess.run([build / "tools/clnet-bench", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return [item for item in items if wanted.fullmatch(item)]


def run_network(build, device, network, folder):
    """Dumps a network's programs; its step."""
    # On a busy machine so short a time may be over before two steps are.
    for seconds in ("0.01", "0.3", "3"):
        shutil.rmtree(folder, ignore_errors=True)
        trace = folder.with_suffix(".json")
        done = subprocess.run([build / "tools/clnet-bench", network, "--seconds", seconds], capture_output=True, text=True,
                              env=on_null_driver(build, device, NULL_OPENCL_DUMP=str(folder), CLNET_TRACE=str(trace)))
        if done.returncode:
            raise Failed(f"{network} on {device}: {done.stderr.strip()}")
        commands = [f"{event['name']} {event['args']['bytes']:.0f}" for event in json.loads(trace.read_text())["traceEvents"]
                    if event["ph"] == "X"]
        launched, moved = period(launches(folder)), period(commands)
        if launched is not None and moved is not None:
            return Step(len(launched), sum(int(command.split()[-1]) for command in moved))
    raise Failed(f"{network} on {device}: no two steps are the same")


def run_items(build, device, items, folder, **variables):
    """Dumps the programs of clnet-bench's items."""
    done = subprocess.run([build / "tools/clnet-bench", *items, "--seconds", "0.01"], capture_output=True, text=True,
                          env=on_null_driver(build, device, NULL_OPENCL_DUMP=str(folder), **variables))
    if done.returncode:
        raise Failed(f"{', '.join(items)} on {device}: {done.stderr.strip()}")


def run_loops(build, device, folder):
    """Dumps the programs whose loops have bars."""
    programs = Programs()
    for name, items, solvers in (("loops", LOOPS, LARGEST), ("packed", PACKED_LOOPS, LARGEST_PACKED)):
        run_items(build, device, items, folder / name, CLNET_SOLVER=solvers)
        programs.add(folder / name)
    programs.texts = {name: text for name, text in programs.texts.items() if re.search(r"^#define TM 128\n", text, re.M) and "#define RM " in text}
    return programs


def bars(programs, results, own, target):
    """The hot loops by kind, and a line for each bar that one misses."""
    kernels = {kind(name, programs.texts[program], own): kernel for program, compiled in results.items() if not isinstance(compiled, str)
               for name, kernel in compiled.items()}
    wrong = [line for name, kernel in kernels.items() for line in below_bars(target.name, name, kernel)]
    expected = {"matmul_gpu:128x128x8:8x8" + way for way in ("", ":transpose_a", ":transpose_b")}
    expected |= {"conv2d_gpu:128x128x8:8x8:" + direction for direction in ("forward", "data", "weights", "forward:packed", "data:packed")}
    return kernels, wrong + [f"{target.name}: {name} was not made" for name in sorted(expected - kernels.keys())]


def run_operations(build, device, folder):
    """Dumps the operation tests' programs, as far as the tests come on a driver that computes nothing."""
    for source in sorted((ROOT / "tests/ops").rglob("*.cpp")):
        if source.stem in WAITING or "TEST_CASE" not in source.read_text():
            continue
        try:
            subprocess.run([build / "tests/clnet-op-tests", "--filenames-as-tags", f"[#{source.stem}]"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=120,
                           env=on_null_driver(build, device, NULL_OPENCL_DUMP=str(folder), CLNET_TEST_ELEMENTS="300"))
        except subprocess.TimeoutExpired:
            print(f"note: the tests of {source.stem} did not end on {device}")


def own_kernels():
    found = set()
    for path in (ROOT / "kernels").rglob("*.cl*"):
        # Where the name is a macro it is the file's.
        found.update([*re.findall(r"\bkernel\b[^;{}]*?\bvoid\s+(\w+)\s*\(", path.read_text()), path.stem])
    return found


def kind(kernel, text, own):
    """What a kernel's limits go by: its name, its tile where there is one, and what it is of. All generated ones are one."""
    if kernel not in own:
        return "generated"
    defines = dict(re.findall(r"^#define (\w+)(?: (.*))?$", text, re.M))
    tiled = all(name in defines for name in ("TM", "TN", "TK", "RM", "RN"))
    tile = ["{TM}x{TN}x{TK}".format(**defines), "{RM}x{RN}".format(**defines)] if tiled else []
    flags = [name.lower() for name in ("FORWARD", "DATA", "WEIGHTS", "TRANSPOSE_A", "TRANSPOSE_B", "ADD", "PACKED") if name in defines]
    return ":".join([kernel, *tile, *flags])


def unpacked(targets):
    """Where the targets' compilers are."""
    script = [ROOT / "tools/dev/offline_compilers.sh", *sorted({target.maker for target in targets})]
    done = subprocess.run(script, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"{script[0].name} ended with {done.returncode}"]
        raise Failed(f"compilers could not be unpacked: {said[-1]}")
    return pathlib.Path(done.stdout.strip())


def compile_all(programs, target, compilers, cache, jobs):
    """Hash -> kernels by name, or the message of what failed."""
    # What reads the compilers' words decides, too.
    version = compilers.version(target.maker) + hashlib.sha256(b"".join(path.read_bytes() for path in compilers.readers)).hexdigest()

    def one(item):
        name, text = item
        groups = programs.groups.get(name, {})
        key = hashlib.sha256(repr((target.name, version, text, sorted(groups.items()))).encode()).hexdigest()
        path = cache / key[:2] / key
        try:
            return name, {kernel: compilers.kernel(*values) for kernel, values in json.loads(path.read_text()).items()}
        except (OSError, ValueError, TypeError):
            pass  # not there, or damaged
        try:
            kernels = compilers.compile(target, text, groups)
        except Failed as failure:
            return name, str(failure)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({kernel: dataclasses.astuple(values) for kernel, values in kernels.items()}))
        fresh.replace(path)
        return name, kernels

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(pool.map(one, programs.texts.items()))


def first_error(message):
    """The line that says what is wrong, without the name of a temporary file."""
    lines = message.splitlines() or ["?"]
    line = next((line for line in lines if re.search(r"\berror\b|fatal", line, re.I)), lines[0])
    return re.sub(r"^\S*/program\.(cl|ptx)", r"program", line.strip())[:300]


def compile_errors(target, results):
    """A line for each thing that is wrong with programs."""
    wrong = collections.Counter(first_error(text) for text in results.values() if isinstance(text, str))
    return [f"{target.name}: {'a program does' if count == 1 else f'{count} programs do'} not compile: {text}" for text, count in wrong.items()]


def worst(programs, results, own):
    """Kind -> the worst of its kernels."""
    found = {}
    for name, kernels in results.items():
        if isinstance(kernels, str):
            continue
        for kernel, result in kernels.items():
            key = kind(kernel, programs.texts[name], own)
            found[key] = KernelLimit.of(result).worse(found.get(key))
    return found


def concluded(options, found, recorded, failures, worse, more=()):
    """Writes what was found, or says what of it is `worse` than recorded; with --table prints it, and `more` lines. The exit code."""
    if options.write_limits:
        recorded.replace(found)
        options.limits.write_text(recorded.text())
        print(f"written: {options.limits}")
    else:
        failures = failures + worse
    if options.table:
        print(found.table())
        for line in more:
            print(line)
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


def common_arguments(description, targets, limits):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=pathlib.Path, metavar="FOLDER", help="programs that are dumped already, instead of the networks'")
    parser.add_argument("--targets", default="all", help="of " + ",".join(targets) + " (default: all)")
    parser.add_argument("--networks", help="items of clnet-bench (default: all that are networks)")
    parser.add_argument("--device", help="of the null driver, for all targets (default: each target's own)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where clnet is built")
    parser.add_argument("--limits", type=pathlib.Path, default=limits, metavar="FILE", help=f"what is recorded (default: {limits.name})")
    parser.add_argument("--write-limits", action="store_true", help="record what was found instead of what was, of these targets")
    parser.add_argument("--table", action="store_true", help="print what was found in the form of the limits")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser


def parsed(parser, targets, also_runs=(), every=""):
    """The arguments, with targets and networks by name, and whether they ask for all that is recorded of these targets (`whole`).
    `also_runs`: (option, program of the build that it needs); `every`: the option that whole runs have."""
    chosen = parser.parse_args()
    chosen.whole = not (chosen.folders or chosen.networks or chosen.device) and (not every or getattr(chosen, every))
    if chosen.write_limits and not chosen.whole:
        needs = f"needs --{every}, without" if every else "goes without"
        parser.error(f"--write-limits {needs} FOLDER, --networks and --device, as it replaces all that is recorded of a target")
    if chosen.jobs < 1:
        parser.error(f"--jobs is {chosen.jobs}, and 1 at least")
    for folder in chosen.folders:
        if not folder.is_dir():
            parser.error(f"there is no folder {folder}")
    unknown = [name for name in chosen.targets.split(",") if name not in targets and name != "all"]
    if unknown:
        parser.error(f"there is no target {unknown[0]}; there are {', '.join(targets)}")
    chosen.targets = list(targets.values()) if chosen.targets == "all" else [targets[name] for name in chosen.targets.split(",")]
    chosen.build = chosen.build.resolve()
    runs = [program for option, program in also_runs if getattr(chosen, option)] + ["tools/clnet-bench"] * (not chosen.folders)
    missing = [file for file in ["tests/null_opencl.icd", *runs] if not (chosen.build / file).exists()]
    if missing and runs:
        parser.error(f"{chosen.build} has no {missing[0]}: build it first")
    if chosen.folders:
        chosen.networks = []
    else:
        chosen.networks = chosen.networks.split(",") if chosen.networks else items_of(chosen.build)
    return chosen


def arguments():
    parser = common_arguments(__doc__, TARGETS, LIMITS)
    parser.add_argument("--operations", action="store_true", help="the operation tests' programs, too: they must compile without spills")
    return parsed(parser, TARGETS, [("operations", "tests/clnet-op-tests")])


def dump(options, device, folder, found):
    """The programs of the networks, whose steps go to `found`, and all others."""
    networks, others = Programs(), Programs()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        steps = pool.map(lambda network: run_network(options.build, device, network, folder / network), options.networks)
        found.steps.update({(network, device): step for network, step in zip(options.networks, steps)})
    for network in options.networks:
        networks.add(folder / network)
    if options.operations:
        run_operations(options.build, device, folder / "operations")
        others.add(folder / "operations")
        others.texts = {name: text for name, text in others.texts.items() if not WRONG_ON_PURPOSE.search(text)}
    for given in options.folders:
        others.add(given)
    return networks, others


def main():
    options = arguments()
    recorded = Limits.read(options.limits, may_lack=options.write_limits)
    folder = unpacked(options.targets)
    compilers = Compilers(folder)
    own = own_kernels()
    found, failures, programs, loops = Limits(), [], {}, {}
    with tempfile.TemporaryDirectory() as temporary:
        for target in options.targets:
            device = options.device or target.device
            if device not in programs:
                dumps = pathlib.Path(temporary) / device
                dumps.mkdir()
                programs[device] = dump(options, device, dumps, found)
            found.versions[target.name] = compilers.version(target.maker)
            parts = [part.of(target) for part in programs[device]]
            failures += [] if any(part.texts for part in parts) else [f"{target.name}: there are no programs to compile"]
            for part, cells, what in zip(parts, (found.kernels, found.others), ("networks", "others")):
                if not part.texts:
                    continue
                results = compile_all(part, target, compilers, folder / "results", options.jobs)
                wrong = compile_errors(target, results)
                failures += wrong
                kernels = worst(part, results, own)
                cells.update({(name, target.name): kernel for name, kernel in kernels.items()})
                failures += [line for name, kernel in kernels.items() for line in units_below_bars(target.name, name, kernel)]
                if part is parts[1]:
                    found.others_targets.append(target.name)
                count = sum(isinstance(result, str) for result in results.values())
                print(f"{target.name:8} {len(results):5} programs ({what}, {device}): {count} do not compile, "
                      f"{sum(kernel.spills > 0 for kernel in kernels.values())} of {len(kernels)} kinds of kernels spill", flush=True)
            if options.networks and target.name in REGISTERS:
                hot = run_loops(options.build, device, pathlib.Path(temporary) / f"loops-{target.name}").of(target)
                results = compile_all(hot, target, compilers, folder / "results", options.jobs)
                kernels, missed = bars(hot, results, own, target)
                failures += compile_errors(target, results) + missed
                loops.update({(name, target.name): kernel for name, kernel in kernels.items()})
                print(f"{target.name:8} {len(kernels):5} hot loops, {len(missed)} bars missed", flush=True)
    return concluded(options, found, recorded, failures, problems(found, recorded), [
        f"loop of {target} {name}: {kernel.registers} registers, {kernel.multiply_adds} multiply-adds among {kernel.operations} operations "
        f"({kernel.multiply_adds / max(1, kernel.operations):.0%}), for {kernel.words} words of local memory"
        for (name, target), kernel in sorted(loops.items())])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, subprocess.CalledProcessError) as failure:
        print(f"offline_compile: {failure}", file=sys.stderr)
        sys.exit(1)

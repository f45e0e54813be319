#!/usr/bin/env python3
"""How long the kernels of clnet-bench's items would take on GPUs that are not there, by a simple model.

    tools/dev/model_time.py resnet18-train-b16                              on all devices of the table below
    tools/dev/model_time.py --devices rtx3090 --rows 60 'char-gpt-train-b32'   one of them, more kernels
    tools/dev/model_time.py --launches --devices h100 resnet18-infer-b16       every launch in its order

clnet-bench runs the item on the null driver (docs/developer/testing.md); of what it launches one run of the item is taken. A launch takes as
long as the longest of

    memory      the bytes of its arguments, at a part of the published bandwidth
    arithmetic  the multiply-adds that its groups execute, those beyond the result's edges too, at the part of the published peak that
                the kernel's innermost loop allows; less where too few waves share a unit to hide what one waits for, and where the
                last round of groups leaves units idle
    latency     what each work-item reads one after the other, where there are too few items to keep the memory busy
    launch      what the queue takes for the smallest kernel

The parameters are those of a study of an earlier clnet, whose times the model repeats (model_time_test.py), and of
bench/notebook/2026-11-gpu-kernels.md for the kernels that came later; only those of the H200 were measured. What caches spare or
lose, and that two launches may overlap, the model does not know. The upload of a batch runs beside the kernels and is told apart, as is
the host's work for a run (with the batch's copy), which is of this machine and build.
"""

import argparse
import collections
import dataclasses
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from offline_compile import LIMITS, ROOT, kind, launches, on_null_driver, own_kernels, period
from offline_limits import Limits
from offline_targets import TARGETS, Failed


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU by its maker's data sheet; a unit is what holds a work-group."""

    target: str  # of offline_limits.txt: which registers kernels take there
    units: int  # SMs; CUs
    peak: float  # f32, flop/s, two for a multiply-add
    bandwidth: float  # bytes/s
    words: float  # of local memory that a unit reads per multiply-add that it could do
    waves: int  # of 32 work-items that a unit holds
    matrix: dict = dataclasses.field(default_factory=dict)  # flop/s of matrix units by type of the operands, sums in f32
    memory_share: float = 0.8  # of the bandwidth that kernels reach which only read and write: the study's
    launch_us: float = 4.0  # of the queue, at least: the study's


DEVICES = {
    # GA102 whitepaper, table 3 (f16 with f32 sums); CUDA's guide, "compute capabilities" 8.6: 32 words and 128 multiply-adds per clock.
    "rtx3090": Device("sm_86", 82, 35.6e12, 936e9, 32 / 128, 48, {"f16": 71e12, "bf16": 71e12, "tf32": 35.6e12}),
    # H100 data sheet and whitepaper, the PCIe card, without sparsity; compute capability 9.0 as above.
    "h100": Device("sm_90", 114, 51.2e12, 2000e9, 32 / 128, 64, {"f16": 756e12, "bf16": 756e12, "tf32": 378e12}),
    # Measured on one (bench/notebook/2026-11-devices.md, driver 580.159.04): multiply-adds in registers (66.9e12 by the data sheet), copies of large
    # buffers (4800e9), and what a small kernel takes with the gap to the next one. Matrix units by the data sheet, without sparsity.
    "h200": Device("sm_90", 132, 44.6e12, 4100e9, 32 / 128, 64, {"f16": 989e12, "bf16": 989e12, "tf32": 494e12}, 1.0, 6.0),
    # AMD's product page and the RDNA 3 ISA guide: 96 CUs at 2.5 GHz. Of its 61 TFLOP/s half, as two multiply-adds share an instruction
    # only now and then. (The study's units: drivers count pairs of CUs that hold a group together, 48 of them.)
    "rx7900xtx": Device("gfx1100", 96, 30.7e12, 960e9, 32 / 64, 32, {"f16": 122.8e12, "bf16": 122.8e12}),
}

# Of the study.
HIDING = ((0, 0.0), (4, 0.5), (8, 0.84), (12, 1.0))  # waves of a unit: the part of its time in which one of them can go on
EVEN_ROUNDS = 6  # so many groups per unit end at about the same time
# Assumed: a load from memory takes half a microsecond, and a loop has four of one word on their way.
LATENCY_US = 0.5
BYTES_ON_THEIR_WAY = 16
# Of arguments these read a little at a time, and how much nobody tells: no bound follows from the bytes.
READ_IN_PART = {"batch_norm_finish", "index_select", "slice_update", "recurrent_step_direct", "recurrent_last_direct",
                "recurrent_backward_step_direct", "recurrent_backward_last_direct"}

# Multiply-adds among the innermost loop's instructions by what a work-item sums up
# (bench/notebook/2026-11-gpu-kernels.md; lib/ops/gemm_gpu.cpp).
TILE_SHARES = {(8, 8): 0.83, (8, 4): 0.75, (4, 4): 0.69, (2, 2): 0.30}
CONV_SHARES = {"forward": 0.81, "data": 0.81, "weights": 0.75, "not blocked": 0.71, "packed": 0.83, "packed, not blocked": 0.74}  # at most
# What Winograd's transforms leave of those by what a work-item sums up (lib/ops/conv/conv2d_winograd_gpu.cpp).
WINOGRAD_SHARES = {64: 0.74, 32: 0.60, 16: 0.59}
OTHER_SHARES = {
    "conv2d_depthwise_gpu": 0.15,  # bench/notebook/2026-11-gpu-kernels.md: 300 billion results of nine taps per second on an RTX 3090
}
# Whether rows of the width and of the values' are multiplied for scores, and added up for results.
ATTENTION = {"attention_gpu": ((1, 0), (0, 1)), "attention_backward_queries_gpu": ((1, 1), (1, 0)),
             "attention_backward_keys_gpu": ((1, 1), (1, 1))}
WINOGRAD_TRANSFORM = 5  # of a group's results: as long as so many channels (lib/ops/conv/conv2d_winograd_gpu.cpp)
DEFAULT_SHARE = 0.25  # one operation per instruction, and as many instructions for places
MATRIX_SHARE = 0.5  # assumed
# Where the kernels of products have `first` and `part` among their arguments that are numbers (convolutions have one more forward).
CONVOLUTIONS = ("conv2d_gpu", "conv2d_matrix_units_gpu")
FIRST_ARGUMENT = {"matmul_gpu": 7, "matmul_matrix_units_gpu": 7, **dict.fromkeys(CONVOLUTIONS, 12)}
WITH_NUMBERS = {*FIRST_ARGUMENT, *ATTENTION, "conv2d_sum_phases_gpu", "conv2d_winograd_gpu"}


@dataclasses.dataclass(frozen=True)
class Launch:
    name: str
    detail: str
    groups: int
    items: int  # of a group
    bytes: float
    flops: float = 0  # of the result
    executed: float = 0  # by all groups, also beyond the result's edges
    share: float = DEFAULT_SHARE  # of the peak, at most
    waves: int = 12  # that fit a unit
    matrix_peak: float | None = None  # where matrix units make it
    full: float = 1  # what a group executes on average, to the most that one does

    def is_product(self):
        return self.name in (*FIRST_ARGUMENT, "conv2d_winograd_gpu")

    def waves_of_group(self):
        return math.ceil(self.items / 32)

    def peak_on(self, device):
        return self.matrix_peak or device.peak


def hidden(waves):
    """The part of its time in which a unit with so many waves computes."""
    for (few, low), (many, high) in zip(HIDING, HIDING[1:]):
        if waves <= many:
            return low + (high - low) * (waves - few) / (many - few)
    return 1.0


def busy(launch, device):
    """The part of all units' time in which they compute; groups that execute less than others count as much less."""
    waves = launch.waves_of_group()
    per_unit = launch.groups * launch.full / device.units
    rounds = math.ceil(per_unit)
    part = hidden(min(max(launch.waves, waves), rounds * waves)) * min(1.0, per_unit)
    return part * per_unit / rounds if 1 < per_unit < EVEN_ROUNDS else part


def bounds(launch, device):
    """Microseconds by what bounds the launch."""
    found = {"launch": device.launch_us}
    if launch.name not in READ_IN_PART:
        found["memory"] = launch.bytes / (device.bandwidth * device.memory_share) * 1e6
    if launch.executed:
        found["arithmetic"] = launch.executed / (launch.peak_on(device) * launch.share * busy(launch, device)) * 1e6
    # Of products the waits are in `hidden`.
    if not launch.is_product() and launch.name not in READ_IN_PART:
        resident = min(launch.groups * launch.items, device.units * max(launch.waves, launch.waves_of_group()) * 32)
        found["latency"] = launch.bytes / (resident * BYTES_ON_THEIR_WAY) * LATENCY_US
    return found


def modelled(launch, device):
    """Microseconds, and what bounds them."""
    found = bounds(launch, device)
    bound = max(found, key=found.get)
    return found[bound], bound


def phase_parts(defines, all_k, first, part, parts):
    """The lengths along k of the parts that each phase of an input's gradient has (kernels/conv/conv2d_phases.clh)."""
    kernel, stride = ([int(defines[axis]) for axis in axes] for axes in (("KH", "KW"), ("SH", "SW")))
    channels = all_k // math.prod(math.ceil(size / step) for size, step in zip(kernel, stride))
    for row, column in itertools.product(*map(range, stride)):
        k = channels * math.ceil((kernel[0] - row) / stride[0]) * math.ceil((kernel[1] - column) / stride[1])
        lengths = [min(part, k - begin) for begin in range(first, first + part * parts, part) if begin < k]
        yield lengths or [0] * (part >= all_k)


def is_uneven(defines):
    """Whether a launch of conv2d_gpu has phases of fewer taps than others."""
    return "DATA" in defines and any(int(defines["K" + axis]) % int(defines["S" + axis]) for axis in "HW")


def unwritten(name, defines, numbers):
    """Bytes among the arguments that belong to parts which a phase does not have."""
    if name in CONVOLUTIONS and is_uneven(defines):
        at = FIRST_ARGUMENT[name]
        cut, elements = numbers[at - 1:at + 3], numbers[at + 3]
    elif name == "conv2d_sum_phases_gpu":
        cut, elements = (numbers[6], 0, numbers[7], numbers[8]), numbers[0]
    else:
        return 0
    found = list(phase_parts(defines, *cut))
    return 4 * elements * (cut[3] - sum(map(len, found)) / len(found))


def fullness(name, defines, numbers):
    """What a product's groups execute on average, to the most that one does."""
    if name not in CONVOLUTIONS or not is_uneven(defines):
        return 1.0
    at, slice_ = FIRST_ARGUMENT[name], int(defines["TK"])
    slices = [math.ceil(length / slice_) for lengths in phase_parts(defines, *numbers[at - 1:at + 3]) for length in lengths]
    return sum(slices) / (len(slices) * max(slices))


def product(name, defines, numbers, groups, device):
    """What groups of a product in tiles execute, their share of the peak, and that peak."""
    m, n, k, rows, columns = (int(defines[size]) for size in ("TM", "TN", "TK", "RM", "RN"))
    forward = name in CONVOLUTIONS and "FORWARD" in defines
    at = FIRST_ARGUMENT[name] + forward
    all_k, first, part = numbers[3] if name not in CONVOLUTIONS else numbers[at - 1], numbers[at], numbers[at + 1]
    depth = math.ceil(min(part, all_k - first) / k) * k
    executed = 2.0 * groups * m * n * depth * fullness(name, defines, numbers)
    if name.endswith("_matrix_units_gpu"):
        unit = next(kind for kind in ("f16", "bf16", "tf32") if "UNIT_" + kind in defines)
        return executed, MATRIX_SHARE, device.matrix[unit]
    share = min(TILE_SHARES[rows, columns], rows * columns / (rows + columns) * device.words)
    if name == "conv2d_gpu":
        what = "weights" if "WEIGHTS" in defines else "not blocked" if "BLOCKED" not in defines else "forward"
        if "PACKED" in defines:
            what = "packed, not blocked" if what == "not blocked" else "packed"
        share = min(share, CONV_SHARES[what])
    return executed, share, None


def winograd(defines, numbers, groups, device):
    """What groups of the 16 products of Winograd's F(2x2, 3x3) execute, and their share of the peak."""
    m, n, k, rows, columns = (int(defines[size]) for size in ("TM", "TN", "TK", "RM", "RN"))
    channels, part = numbers[2], numbers[10]
    parts = math.ceil(channels / part)
    depth = sum(math.ceil(min(part, channels - first) / k) * k for first in range(0, channels, part)) / parts
    # Slices are written to local memory by the items that read them, and the transforms take instructions beside the product's.
    across = [m // rows, n // columns]
    words = rows * columns / (rows + columns + columns / across[0] + rows / across[1])
    share = min(TILE_SHARES[max(rows, columns), min(rows, columns)] * WINOGRAD_SHARES[rows * columns], words * device.words)
    return 2.0 * groups * 16 * m * n * (depth + WINOGRAD_TRANSFORM), share


def attention(name, defines, numbers, groups, device):
    """What groups of attention in tiles execute, and their share of the peak."""
    m, n, k, rows, columns = (int(defines[size]) for size in ("TM", "TN", "TK", "RM", "RN"))
    blocks, queries, keys = numbers[:3]
    together, causal = numbers[6], numbers[7]
    widths, across = [int(defines[size]) for size in ("WIDTH", "VALUES")], n // columns
    held = [share if share <= 2 else math.ceil(share / 4) * 4 for share in (math.ceil(width / across) for width in widths)]
    by_rows = name != "attention_backward_keys_gpu"
    lengths = [min(keys, begin + m) if causal else keys for begin in range(0, blocks * m, m)] if by_rows else \
        [max(queries - begin, 0) if causal else queries for begin in range(0, blocks * m, m)]
    pairs = groups // blocks * (1 if by_rows else together) * m * sum(math.ceil(length / n) * n for length in lengths)
    scores, results = ATTENTION[name]
    # Multiply-adds for each pair, and the time of each by the words of local memory that it takes.
    parts = [(math.ceil(width / k) * k * count, columns) for width, count in zip(widths, scores)]
    parts += [(across * size * count, size) for size, count in zip(held, results)]
    products = sum(count for count, _ in parts)
    time = sum(count / min(TILE_SHARES[4, 4], rows * size / (rows + size) * device.words) for count, size in parts if count)
    return 2.0 * pairs * products, products / time


def launch_of(event, line, text, limits, own, device):
    """A launch by its event of the trace and its line of the null driver's dump; `text` is the program's."""
    _, name, dimensions, group, _, numbers = line.split()
    sizes, local = ([int(size) for size in field.split("x")] for field in (dimensions, group))
    local = local if all(local) else [min(64, sizes[0]), 1, 1]
    groups, items = math.prod(math.ceil(size / part) for size, part in zip(sizes, local)), math.prod(local)
    arguments = event["args"]
    flops = executed = arguments["flops"]
    share, peak = OTHER_SHARES.get(name, DEFAULT_SHARE), None
    defines = dict(re.findall(r"^#define (\w+)(?: (.*))?$", text, re.M))
    numbers = [int(number) for number in numbers.split(",")] if name in WITH_NUMBERS else []
    if name in FIRST_ARGUMENT:
        executed, share, peak = product(name, defines, numbers, groups, device)
    elif name == "conv2d_winograd_gpu":
        executed, share = winograd(defines, numbers, groups, device)
    elif name in ATTENTION:
        executed, share = attention(name, defines, numbers, groups, device)
    limit = limits.kernels.get((kind(name, text, own), device.target))
    waves = device.waves * limit.occupancy // 100 if limit else device.waves // 2
    what = " ".join(part for part in (passes(name, text), arguments["detail"]) if part)
    size = arguments["bytes"] - unwritten(name, defines, numbers)
    return Launch(name, what, groups, items, size, flops, executed, share, waves, peak, fullness(name, defines, numbers))


def passes(name, text):
    """Which of a convolution's three."""
    if not name.startswith("conv2d_"):
        return ""
    return next((what.lower() for what in ("DATA", "WEIGHTS", "FORWARD") if re.search(rf"^#define {what}\b", text, re.M)), "")


def bench(build, device_name, item, seconds, *options, **variables):
    done = subprocess.run([build / "tools/clnet-bench", item, "--seconds", seconds, *options], capture_output=True, text=True,
                          env=on_null_driver(build, device_name, **variables))
    if done.returncode:
        raise Failed(f"{item} on {device_name}: {done.stderr.strip()}")


def step(build, device_name, item, limits):
    """The launches of one run of the item, bytes of other commands by name, and the host's milliseconds."""
    device = DEVICES[device_name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        dump, trace, result = folder / "dump", folder / "trace.json", folder / "result.json"
        # On a busy machine the first time may not be enough for runs to outnumber what comes before them.
        for seconds in "0.1", "1":
            shutil.rmtree(dump, ignore_errors=True)
            bench(build, device_name, item, seconds, NULL_OPENCL_DUMP=str(dump), CLNET_TRACE=str(trace))
            events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
            lines = (dump / "launches").read_text().splitlines()
            one, commands = period(launches(dump)), period([f"{event['name']} {event['args']['bytes']:.0f}" for event in events])
            if one and commands:
                break
        else:
            raise Failed(f"{item} on {device_name}: no two runs are the same")
        bench(build, device_name, item, "0.1", "--json", result)
        host_ms = json.loads(result.read_text())["items"][0]["best_ms"]
        texts = {path.stem: path.read_text(errors="replace") for path in dump.glob("*.cl")}
    names = {line.split()[1] for line in lines}
    kernels = [event for event in events if event["name"] in names]
    if [event["name"] for event in kernels] != [line.split()[1] for line in lines]:
        raise Failed(f"{item} on {device_name}: a library launches kernels, of which clnet does not know what they do")
    own, others = own_kernels(), collections.Counter()
    for command in commands:
        name, size = command.split()
        if name not in names:
            others[name] += int(size)
    last = len(one)
    found = [launch_of(event, line, texts[line.split()[0]], limits, own, device) for event, line in zip(kernels[-last:], lines[-last:])]
    return found, others, host_ms


def table(found, device, rows):
    """Lines: launches that are the same together, the most expensive first."""
    together = collections.defaultdict(list)
    for launch in found:
        together[launch].append(modelled(launch, device))
    ordered = sorted(together.items(), key=lambda entry: -sum(time for time, _ in entry[1]))
    total = sum(time for times in together.values() for time, _ in times)
    lines = [f"{'us':>9} {'%':>5} {'count':>5} {'us each':>8} {'bound by':10} {'of peak':>7} {'per unit':>8}  kernel"]
    for launch, times in ordered[:rows]:
        each, bound = times[0]
        reached = f"{100 * launch.flops / (each * 1e-6 * launch.peak_on(device)):.0f} %" if launch.is_product() else ""
        lines.append(f"{each * len(times):9.1f} {100 * each * len(times) / total:5.1f} {len(times):5} {each:8.1f} {bound:10} {reached:>7} "
                     f"{launch.groups / device.units:8.2f}  {launch.name} {launch.detail}".rstrip())
    rest = [time for _, times in ordered[rows:] for time, _ in times]
    if rest:
        lines.append(f"{sum(rest):9.1f} {100 * sum(rest) / total:5.1f} {len(rest):5} {'':8} the others")
    return lines


def summary(found, device):
    """One line: total, what bounds it, and the share of peak in products."""
    by = collections.Counter()
    for launch in found:
        time, bound = modelled(launch, device)
        by[bound] += time
    total = sum(by.values())
    flops = sum(launch.flops for launch in found if launch.is_product())
    reached = 100 * flops / (total * 1e-6 * device.peak)
    parts = ", ".join(f"{bound} {100 * time / total:.0f} %" for bound, time in by.most_common())
    return (f"{total / 1e3:.2f} ms modelled, {len(found)} launches ({parts}); {flops / 1e9:.1f} GFLOP in products, "
            f"{reached:.0f} % of the f32 peak")


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("items", nargs="+", metavar="ITEM", help="of clnet-bench")
    parser.add_argument("--devices", default=",".join(DEVICES), help="(default: %(default)s)")
    parser.add_argument("--rows", type=int, default=25, help="kernels that are told apart, by time (default: %(default)s)")
    parser.add_argument("--launches", action="store_true", help="print every launch in its order instead")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where clnet is built")
    options = parser.parse_args(words)
    options.devices = options.devices.split(",")
    unknown = [name for name in options.devices if name not in DEVICES]
    if unknown:
        parser.error(f"there is no device {unknown[0]}; there are {', '.join(DEVICES)}")
    options.build = options.build.resolve()
    missing = [file for file in ("tests/null_opencl.icd", "tools/clnet-bench") if not (options.build / file).exists()]
    if missing:
        parser.error(f"{options.build} has no {missing[0]}: build it first")
    return options


def main():
    options = options_of(None)
    limits = Limits.read(LIMITS)
    for item in options.items:
        for name in options.devices:
            device = DEVICES[name]
            found, others, host_ms = step(options.build, name, item, limits)
            print(f"{item} on {name}: {summary(found, device)}")
            if options.launches:
                for launch in found:
                    time, bound = modelled(launch, device)
                    print(f"{time:9.1f} us {bound:10} {launch.groups:6} groups of {launch.items:4}  {launch.name} {launch.detail}".rstrip())
            else:
                print("\n".join(table(found, device, options.rows)))
            besides = "".join(f"; {command}: {size / 1e6:.2f} MB" for command, size in others.items())
            total_ms = sum(modelled(launch, device)[0] for launch in found) / 1e3
            waits = " the kernels wait for it" if host_ms > total_ms else " beside the kernels"
            print(f"host: {host_ms:.2f} ms on this machine,{waits}{besides}\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        print(f"model_time: {failure}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

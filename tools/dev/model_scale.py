#!/usr/bin/env python3
"""How well training scales over ranks on clusters that are not there, by a model, and the model beside ranks on this machine.

    tools/dev/model_scale.py                all tables
    tools/dev/model_scale.py --page         writes them into docs/developer/scaling.md; --check-page: fails if they differ
    tools/dev/model_scale.py --steps        the steps below, anew from the plans on the null driver: needs a build
    tools/dev/model_scale.py --check        sums and training steps of 2 and 4 ranks on this machine, predicted and measured

Efficiency is the time of a step without other ranks by that with them, where each rank keeps its batch. Each rank has a GPU, a host and a
link to all others of its own. A step is

    compute     the plan's kernels by model_time.py (ResNet-50), or the kernels that the layers need by the same rules (the GPT)
    read, write the gradients' way from the device to the host's memory and back
    sum         an all-reduce of each bucket over the link: messages cost alpha each, and bytes beta each

Buckets are made as lib/dist/exchange.cpp makes them. "Now" is what clnet does: it sends when the whole backward pass is over, and one
bucket is read while another is summed. "Overlap" starts a bucket when its last gradient is ready, the last layers' first. Networks'
congestion, slow ranks and the input's way are not in the model.
"""

import argparse
import dataclasses
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from generated_page import write_or_compare
from model_time import DEVICES, MATRIX_SHARE, ROOT, TILE_SHARES, Launch, Limits, LIMITS, modelled, step as plan_of
from offline_targets import Failed
from peers.table import replace_between_marks

PAGE, MARKS = "docs/developer/scaling.md", "scaling"
RANKS = [2 ** power for power in range(1, 11)]
ENOUGH = 0.9
MIB = 1 << 20
FIRST_BUCKET, NEXT_BUCKET = 1 * MIB, 25 * MIB  # lib/dist/exchange.h
BLOCK = 4 * MIB  # lib/dist/collective.cpp
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")  # Debian's dataset-fashion-mnist
TOLERANCE = 0.03  # of a plan's times: models of costs change


@dataclasses.dataclass(frozen=True)
class Link:
    """Of one host, in both directions at once."""

    bandwidth: float  # bytes/s
    latency: float  # seconds from a message's start to its arrival
    message: float  # seconds of the sender's and the receiver's processor


# Ethernet's frames leave 1448 of 1538 bytes to TCP; RDMA's headers take less. Latencies and the cost of a message are assumed: those of
# TCP through the kernel, and of RDMA at 100 Gb/s.
LINKS = {
    "10": Link(10e9 / 8 * 1448 / 1538, 30e-6, 2e-6),
    "25": Link(25e9 / 8 * 1448 / 1538, 20e-6, 2e-6),
    "100": Link(100e9 / 8 * 0.97, 3e-6, 0.5e-6),
}


@dataclasses.dataclass(frozen=True)
class Host:
    copies: float  # bytes/s between a device and plain memory
    sums: float  # bytes/s of parts in f32 that one thread adds
    sums_of_16_bits: float


# Copies: plain memory on the host of an H200 (bench/notebook/2026-11-devices.md). Sums: add_parts() of 2 parts on a core of a Xeon with
# AVX-512 (model 207), which had other work beside it. clnet is compiled for any x86-64.
HOST = Host(10e9, 12e9, 4e9)


def direct(ranks, size, link):
    """clnet's own: all send a segment of each block to all, and its sums; a block's sums go out beside the next one's pieces."""
    blocks = math.ceil(size / BLOCK)
    return (blocks + 1) * link.latency + 2 * blocks * (ranks - 1) * link.message + 2 * (ranks - 1) / ranks * size / link.bandwidth


def ring(ranks, size, link):
    return 2 * (ranks - 1) * (link.latency + link.message + size / ranks / link.bandwidth)


def halving(ranks, size, link):
    """Halves of halves there, and back: a tree's number of messages with a ring's bytes."""
    return 2 * math.ceil(math.log2(ranks)) * (link.latency + link.message) + 2 * (ranks - 1) / ranks * size / link.bandwidth


def tree(ranks, size, link):
    """Up a binary tree and down, the whole array at a time."""
    return 2 * math.ceil(math.log2(ranks)) * (link.latency + link.message + size / link.bandwidth)


WAYS = {"direct": direct, "ring": ring, "halving": halving, "tree": tree}


@dataclasses.dataclass(frozen=True)
class Step:
    """A rank's own work for one batch, in seconds, and the parameters in the order of the model."""

    forward: float
    backward: float
    update: float
    elements: tuple
    ready: tuple  # by parameter: the part of the backward pass after which its gradient is there


@dataclasses.dataclass(frozen=True)
class Options:
    overlap: bool = False
    wide: int = 4  # bytes of an element that travels
    sums: float | None = None  # bytes/s in place of the host's, as are copies
    copies: float | None = None
    buckets: tuple = (FIRST_BUCKET, NEXT_BUCKET)
    way: str = "direct"
    sharded: bool = False  # each rank has the optimizer's state of 1/n, and updates that part
    batches: int = 1  # accumulated before gradients are sent


def buckets_of(sizes, limits=(FIRST_BUCKET, NEXT_BUCKET)):
    """Positions that are sent together, as buckets_of() of lib/dist/exchange.cpp: a bucket is closed by the value that fills it."""
    buckets, filled = [], 0
    for at, size in enumerate(sizes):
        if not buckets or filled >= limits[0 if len(buckets) <= 1 else 1]:
            buckets.append([])
            filled = 0
        buckets[-1].append(at)
        filled += size
    return buckets


def exchange(sizes, ready, ranks, link, options, host):
    """When all sums are on the device, if buckets of these sizes are ready then."""
    adds = options.sums or (host.sums if options.wide == 4 else host.sums_of_16_bits)
    copies = options.copies or host.copies
    read = summed = 0.0
    sums = []
    for size, at in zip(sizes, ready):
        read = max(read, at) + size / copies
        summed = max(summed, read) + WAYS[options.way](ranks, size, link) + size / adds
        sums.append((size, summed))
    # The thread that reads writes, too.
    written = read
    for size, at in sums:
        written = max(written, at) + size / copies
    return written


def step_time(step, ranks, link, options=Options(), host=HOST):
    """Seconds from one step to the next."""
    backward_begins = (options.batches - 1) * (step.forward + step.backward) + step.forward
    computed = backward_begins + step.backward
    if ranks == 1:
        return computed + step.update
    order = range(len(step.elements))
    if options.overlap:
        order = order[::-1]
    sizes = [options.wide * step.elements[at] for at in order]
    buckets = [[order[at] for at in bucket] for bucket in buckets_of(sizes, options.buckets)]
    ready = [backward_begins + step.backward * max(step.ready[at] for at in bucket) if options.overlap else computed for bucket in buckets]
    summed = exchange([options.wide * sum(step.elements[at] for at in bucket) for bucket in buckets], ready, ranks, link, options, host)
    # Reduce-scatter and all-gather are the halves of an all-reduce; a message more waits for the update between them.
    update = step.update / ranks + len(buckets) * link.latency if options.sharded else step.update
    return max(summed, computed) + update


def efficiency(step, ranks, link, options=Options(), host=HOST):
    return step_time(step, 1, link, options, host) / step_time(step, ranks, link, options, host)


def first_below(step, link, options):
    """The least of RANKS whose efficiency is too low, or None."""
    return next((ranks for ranks in RANKS if efficiency(step, ranks, link, options) < ENOUGH), None)


def batches_needed(step, ranks, link, options):
    """The fewest batches for which gradients have to be sent once to be efficient enough."""
    return next(batches for batches in itertools.count(1)
                if efficiency(step, ranks, link, dataclasses.replace(options, batches=batches)) >= ENOUGH)


# ---- ResNet-50: the plan's step ------------------------------------------------------------------------------------------------------------

ITEMS = {"f32": "resnet50-train-b8", "f16": "resnet50-train-b8-f16"}
# What --steps prints: milliseconds forward, backward and of the update (SGD with momentum, running statistics), and the parts of the
# backward pass after which the gradients of layer4 to layer1 and of the first convolution are there.
PLANS = {
    ("f32", "rtx3090"): (4.941, 9.494, 0.745, (0.161, 0.469, 0.713, 0.952, 0.999)),
    ("f32", "h100"): (2.970, 6.000, 0.385, (0.197, 0.504, 0.733, 0.947, 0.998)),
    ("f32", "rx7900xtx"): (5.319, 10.012, 0.728, (0.161, 0.471, 0.722, 0.953, 0.999)),
    ("f16", "rtx3090"): (3.723, 6.626, 0.745, (0.180, 0.497, 0.740, 0.946, 0.998)),
    ("f16", "h100"): (1.290, 2.195, 0.385, (0.164, 0.453, 0.683, 0.940, 0.994)),
    ("f16", "rx7900xtx"): (3.247, 5.664, 0.728, (0.186, 0.492, 0.740, 0.952, 0.998)),
}
BLOCKS = (3, 4, 6, 3)
BACKWARD_CONVOLUTIONS = tuple(3 * blocks + 1 for blocks in BLOCKS[::-1]) + (1,)


def resnet50_parameters():
    """(elements, convolutions before its own, from the first layer on) of each parameter, as lib/nn/models.cpp adds them."""
    found, convolutions = [], 0

    def convolution(channels, filters, kernel):
        nonlocal convolutions
        found.extend((elements, convolutions) for elements in (channels * filters * kernel ** 2, filters, filters))
        convolutions += 1

    convolution(3, 64, 7)
    channels = 64
    for stage, blocks in enumerate(BLOCKS):
        width = 64 << stage
        for block in range(blocks):
            convolution(channels, width, 1)
            convolution(width, width, 3)
            convolution(width, 4 * width, 1)
            if block == 0:
                convolution(channels, 4 * width, 1)
            channels = 4 * width
    found += [(channels * 1000, convolutions), (1000, convolutions)]
    return found


def resnet50(device, products="f32"):
    """The plan's step; within a stage of layers the gradients come evenly."""
    forward, backward, update, marks = PLANS[products, device]
    parameters = resnet50_parameters()
    ends, begin, mark = {parameters[-1][1]: 0.0}, parameters[-1][1], 0.0
    for count, end in zip(BACKWARD_CONVOLUTIONS, marks):
        for done in range(1, count + 1):
            ends[begin - done] = mark + (end - mark) * done / count
        begin, mark = begin - count, end
    return Step(forward / 1e3, backward / 1e3, update / 1e3, tuple(size for size, _ in parameters), tuple(ends[at] for _, at in parameters))


def planned(build, device_name, item):
    """A line of PLANS from the plan's launches."""
    device = DEVICES[device_name]
    launches, _, _ = plan_of(build, device_name, item, Limits.read(LIMITS))
    times = [modelled(launch, device)[0] / 1e3 for launch in launches]
    names = [launch.name for launch in launches]
    begin = max(at for at, name in enumerate(names) if name.startswith("cross_entropy"))
    update = names.index("optimizer_update")
    weights = [at for at, launch in enumerate(launches) if launch.name.startswith("conv2d") and launch.detail.startswith("weights")]
    if len(weights) != sum(BACKWARD_CONVOLUTIONS):
        raise Failed(f"{item} on {device_name} has {len(weights)} launches for weights' gradients, not one for each convolution")
    backward = sum(times[begin:update])
    marks, at = [], 0
    for count in BACKWARD_CONVOLUTIONS:
        at += count
        marks.append(sum(times[begin:weights[at - 1] + 1]) / backward)
    return sum(times[:begin]), backward, sum(times[update:]), tuple(marks)


# ---- the GPT of 125 M parameters: GPT-2's sizes (Radford and others 2019), the last layer's weights those of the embedding ---------------

LAYERS, WIDTH, CONTEXT, VOCABULARY = 12, 768, 1024, 50257
SEQUENCES = 8
TILE, ITEMS_OF_GROUP = 128, 256
WAVES = 16  # two groups share a unit, as the registers of such tiles allow


def elementwise(*elements):
    total = sum(elements)
    return Launch("elementwise", "", math.ceil(max(elements) / (4 * ITEMS_OF_GROUP)), ITEMS_OF_GROUP, 4.0 * total)


def product(m, n, k, device, unit=None):
    """A product in tiles, cut along k until all units have two groups, and the parts' sum."""
    groups = math.ceil(m / TILE) * math.ceil(n / TILE)
    parts = max(1, min(round(2 * device.units / groups), k // TILE))
    executed = 2.0 * groups * TILE * TILE * math.ceil(k / 8) * 8
    share = MATRIX_SHARE if unit else min(TILE_SHARES[8, 8], 4 * device.words)
    found = [Launch("matmul_gpu", "", groups * parts, ITEMS_OF_GROUP, 4.0 * (m * k + k * n + parts * m * n), 2.0 * m * n * k, executed, share,
                    WAVES, device.matrix[unit] if unit else None)]
    return found + ([elementwise(parts * m * n, m * n)] if parts > 1 else [])


def attention(tokens, products, device, reads):
    """Causal: half of all pairs, so many products of them with the width. `reads`: multiply-adds for each word of local memory."""
    flops = products * 2.0 * tokens * CONTEXT / 2 * WIDTH
    share = min(TILE_SHARES[4, 4], reads * device.words)
    return Launch("attention_gpu", "", tokens // 64 * (WIDTH // 64), ITEMS_OF_GROUP, 4.0 * 4 * tokens * WIDTH, flops, flops, share, WAVES)


def gpt(device_name, products="f32", sequences=SEQUENCES):
    """Within 8 % of the plans of models::CharGpt with these sizes, but for its last layer's own matrix, with 1 and 2 sequences."""
    device, tokens, w = DEVICES[device_name], sequences * CONTEXT, WIDTH
    unit = products if products != "f32" else None
    time = lambda launches: sum(modelled(launch, device)[0] for launch in launches) / 1e6
    linear = lambda outputs, inputs: product(tokens, outputs, inputs, device, unit)
    # Data's and weights' gradients, and the bias's.
    linear_backward = lambda outputs, inputs: (product(tokens, inputs, outputs, device, unit) + product(outputs, inputs, tokens, device, unit) +
                                               [elementwise(tokens * outputs)])
    wide = tokens * w
    layers = ((3 * w, w), (w, w), (4 * w, w), (w, 4 * w))
    # Both norms, the activation, both sums around the layer.
    forward = time([*(launch for layer in layers for launch in linear(*layer)), attention(tokens, 2, device, 2.0),
                    *[elementwise(wide, wide)] * 2, elementwise(4 * wide, 4 * wide), *[elementwise(wide, wide, wide)] * 2])
    backward = time([*(launch for layer in layers for launch in linear_backward(*layer)), attention(tokens, 7, device, 1.1),
                     *[elementwise(wide, wide, wide)] * 2, elementwise(4 * wide, 4 * wide, 4 * wide), *[elementwise(wide, wide, wide)] * 2])
    logits = tokens * VOCABULARY
    # The loss reads them twice; its gradient reads and writes them.
    head = time([*linear(VOCABULARY, w), elementwise(logits, logits)])
    head_backward = time([elementwise(logits, logits), *linear_backward(VOCABULARY, w)])
    embedding = time([elementwise(wide, wide)])
    whole = head_backward + LAYERS * backward + embedding
    layer = (3 * w * w, 3 * w, w * w, w, 4 * w * w, 4 * w, 4 * w * w, w, w, w, w, w)
    elements = (VOCABULARY * w, CONTEXT * w) + layer * LAYERS + (w, w)
    # The embedding's gradient has a part of the last layer and one of the first.
    ready = (1.0, 1.0) + tuple((head_backward + (LAYERS - at) * backward) / whole for at in range(LAYERS) for _ in layer) + \
        (head_backward / whole,) * 2
    # Adam reads weights, gradients and two states, and writes all but the gradients.
    update = 7 * 4 * sum(elements) / (device.bandwidth * device.memory_share)
    return Step(embedding + LAYERS * forward + head, whole, update, elements, ready)


# ---- tables --------------------------------------------------------------------------------------------------------------------------------

TITLES = {"rtx3090": "RTX 3090", "h100": "H100", "rx7900xtx": "7900 XTX"}
# Four of the plan's batches are a rank's batch, for which gradients are sent once (--accumulate 4).
NETWORKS = {"ResNet-50": (resnet50, 4), "GPT": (gpt, 1)}
SAMPLES = {"ResNet-50": 8, "GPT": SEQUENCES}  # of one batch
AT_RANKS, AT_LINK = 64, "25"
NOW = {"overlap": True}
PINNED = {**NOW, "copies": 25e9}  # what PCIe 4.0 with 16 lanes gives
LARGE = {**NOW, "batches": 4}  # times the network's
TOGETHER = {**PINNED, "wide": 2}
CHANGES = {
    "now": NOW,
    "without overlap": {},
    "bf16": {**NOW, "wide": 2},
    "bf16 added as fast as f32": {**NOW, "wide": 2, "sums": HOST.sums},
    "pinned memory": PINNED,
    "buckets of 4 MiB": {**NOW, "buckets": (MIB, 4 * MIB)},
    "one bucket": {**NOW, "buckets": (1 << 40, 1 << 40)},
    "sharded optimizer": {**NOW, "sharded": True},
    "ring": {**NOW, "way": "ring"},
    "halving": {**NOW, "way": "halving"},
    "tree": {**NOW, "way": "tree"},
    "bf16, pinned": TOGETHER,
    "four times the batch": LARGE,
    "the last two": {**TOGETHER, **LARGE},
}


def options_of(network, batches=1, **changes):
    return Options(batches=batches * NETWORKS[network][1], **changes)


def table(header, rows):
    return ["| " + " | ".join(header) + " |", "|" + "---|" * len(header), *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def steps_table():
    rows = []
    for network, (make, batches) in NETWORKS.items():
        for device, title in TITLES.items():
            step = make(device)
            sizes = [4 * size for size in step.elements]
            buckets = [sum(sizes[at] for at in bucket) for bucket in buckets_of(sizes)]
            rows.append((network, title, f"{1e3 * step_time(step, 1, None, options_of(network)):.1f}", f"{1e3 * step.update:.1f}",
                         f"{sum(sizes) / 1e6:.0f}", f"{len(buckets)}, {min(buckets) / 1e6:.2g} to {max(buckets) / 1e6:.0f}"))
    return table(("network", "device", "step, ms", "its update", "gradients, MB", "buckets"), rows)


def efficiencies(network, device):
    """As text: so many numbers are no words of the page."""
    step = NETWORKS[network][0](device)
    lines = [f"{network}, {TITLES[device]}", f"{'ranks':16}" + "".join(f"{ranks:6}" for ranks in RANKS)]
    for overlap in True, False:
        for name, link in LINKS.items():
            cells = "".join(f"{efficiency(step, ranks, link, options_of(network, overlap=overlap)):6.2f}" for ranks in RANKS)
            lines.append(f"{name + ' Gb/s' + ('' if overlap else ' after'):16}{cells}")
    return lines


def first_table():
    """Where efficiency is lost, and what batch it takes to keep it."""
    rows = []
    for network, (make, batches) in NETWORKS.items():
        for device, title in TITLES.items():
            step = make(device)
            first = [first_below(step, link, options_of(network, **changes)) or "none" for changes in (NOW, {**TOGETHER, **LARGE})
                     for link in LINKS.values()]
            needed = [batches_needed(step, AT_RANKS, link, Options(**changes)) * SAMPLES[network] for changes in (NOW, TOGETHER)
                      for link in LINKS.values()]
            rows.append((f"{network}, {title}", *(" / ".join(map(str, three)) for three in (first[:3], first[3:], needed[:3], needed[3:]))))
    return table(("10 / 25 / 100 Gb/s", "first, now", "first, last row", "samples, now", "samples, bf16, pinned"), rows)


def ways_table():
    rows = [(name, ranks, *(f"{1e3 * way(ranks, size, LINKS[AT_LINK]):.2f}" for way in WAYS.values()))
            for size, name in ((NEXT_BUCKET, "25 MiB"), (16 << 10, "16 KiB")) for ranks in (2, 16, 128, 1024)]
    return table(("bytes", "ranks", *WAYS), rows)


def changes_table():
    columns = [(network, device, link) for network in NETWORKS for device in ("rtx3090", "h100") for link in ("25", "100")]
    cell = lambda step, network, link, **changes: f"{efficiency(step, AT_RANKS, LINKS[link], options_of(network, **changes)):.2f}"
    rows = [(name, *(cell(NETWORKS[network][0](device), network, link, **changes) for network, device, link in columns))
            for name, changes in CHANGES.items()]
    rows.append(("f16 products", *(cell(NETWORKS[network][0](device, "f16"), network, link, **NOW) for network, device, link in columns)))
    return table(("", *(f"{network}, {TITLES[device]}, {link}" for network, device, link in columns)), rows)


def page_lines():
    lines = ["", "### Steps and buckets", "", *steps_table(), "### Efficiency", "", "```text"]
    for network in NETWORKS:
        for device in TITLES:
            lines += [*efficiencies(network, device), ""]
    lines[-1:] = ["```", ""]
    lines += [f"### First ranks below {ENOUGH}, and samples for {ENOUGH}", "", *first_table()]
    lines += [f"### Ways to add, milliseconds over {AT_LINK} Gb/s", "", *ways_table()]
    return lines + [f"### Changes, at {AT_RANKS} ranks", "", *changes_table()]


def run_page(root, check):
    text = replace_between_marks((root / PAGE).read_text(encoding="utf-8"), MARKS, page_lines())
    return write_or_compare(root, PAGE, text, check, "tools/dev/model_scale.py --page")


# ---- ranks on this machine -----------------------------------------------------------------------------------------------------------------

FITTED, PREDICTED = (64 << 10, NEXT_BUCKET), 8 * MIB  # bytes
JOBS = 3  # of each kind, in turn, as others' work comes and goes
WARM = 2  # first rounds that do not count
NETWORK, BATCH, IMAGES, EPOCHS = "cnn", 16, 512, 5


def fitted(ranks, sizes, seconds):
    """alpha and beta of the direct way, sums and copies in beta, from two sizes' times: a Link."""
    (rounds, wire), (more_rounds, more_wire) = ((math.ceil(size / BLOCK) + 1, 2 * (ranks - 1) / ranks * size) for size in sizes)
    beta = (seconds[1] * rounds - seconds[0] * more_rounds) / (more_wire * rounds - wire * more_rounds)
    # On a busy machine long sums lose the processor, and short ones do not: the line may begin below 0.
    return Link(1 / beta, max(0.0, (seconds[0] - wire * beta) / rounds), 0.0)


def under_launcher(ranks, command):
    done = subprocess.run(["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", str(ranks), *map(str, command)],
                          capture_output=True, text=True, env=alone_environment())
    if done.returncode:
        raise Failed(f"{ranks} ranks: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def alone_environment():
    return {**os.environ, "POCL_MAX_PTHREAD_COUNT": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def measured_sums(build, ranks, elements, way="times"):
    """The buckets that the program makes of values of so many elements, and seconds of each round."""
    text = under_launcher(ranks, [build / "tests/dist_ranks", way, ranks, *elements])
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith(("buckets ", "seconds "))}
    return [int(size) for size in lines["buckets"]], [float(second) for second in lines["seconds"]][WARM:]


def rates(path):
    """Images per second of all epochs but the first, which compiles."""
    rows = [line.split(",") for line in path.read_text().splitlines()]
    return [float(row[rows[0].index("images_per_second")]) for row in rows[2:]]


def training(build, folder, ranks, together):
    """Seconds of the steps of ranks: together, or each by itself and all at once."""
    def command(name, batch):
        return [build / "tools/clnet-train", "--data", folder / "data", "--model", NETWORK, "--lr", "0.001", "--schedule", "constant", "--epochs",
                str(EPOCHS), "--batch-size", str(batch), "--csv", folder / f"{name}.csv", "--save", folder / f"{name}.safetensors"]

    if together:
        under_launcher(ranks, command("all", ranks * BATCH))
        return [ranks * BATCH / rate for rate in rates(folder / "all.csv")]
    alone = [subprocess.Popen(command(str(rank), BATCH), stdout=subprocess.DEVNULL, env=alone_environment()) for rank in range(ranks)]
    if any(process.wait() for process in alone):
        raise Failed(f"{NETWORK} does not train alone")
    return [BATCH / rate for rank in range(ranks) for rate in rates(folder / f"{rank}.csv")]


def saved_elements(path):
    """Of the parameters in a file of safetensors."""
    data = path.read_bytes()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    values = sorted((value["data_offsets"][0], math.prod(value["shape"])) for name, value in header.items() if name != "__metadata__")
    return [elements for _, elements in values]


def spread(seconds):
    first, middle, last = statistics.quantiles(seconds, n=4)
    return f"{1e3 * middle:8.2f} ms ({1e3 * first:.2f} to {1e3 * last:.2f}, best {1e3 * min(seconds):.2f})"


def beside(what, predicted, seconds):
    return f"    {what:34} predicted {1e3 * predicted:8.2f} ms, measured {spread(seconds)}: {predicted / statistics.median(seconds):.2f} of it"


def run_check(build):
    resnet = [elements for elements, _ in resnet50_parameters()]
    wanted = [4 * sum(resnet[at] for at in bucket) for bucket in buckets_of([4 * elements for elements in resnet])]
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} before; medians, quartiles in brackets")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run([sys.executable, "-B", ROOT / "tools/dev/shorten_idx.py", DATA, folder / "data", str(IMAGES)], check=True)
        for ranks in 2, 4:
            sums = {size: [] for size in (*FITTED, PREDICTED)}
            exchange_f32, exchange_bf16, alone, together = [], [], [], []
            for _ in range(JOBS):
                for size, found in sums.items():
                    found += measured_sums(build, ranks, [size // 4])[1]
                buckets, seconds = measured_sums(build, ranks, resnet)
                if buckets != wanted:
                    raise Failed(f"the program puts ResNet-50 into buckets of {buckets}, the model of {wanted}")
                exchange_f32 += seconds
                exchange_bf16 += measured_sums(build, ranks, resnet, "times-bf16")[1]
                alone += training(build, folder, ranks, together=False)
                together += training(build, folder, ranks, together=True)
            link = fitted(ranks, FITTED, [statistics.median(sums[size]) for size in FITTED])
            print(f"{ranks} ranks: alpha {1e6 * link.latency:.0f} us, {link.bandwidth / 1e9:.2f} GB/s of messages, sums and copies in it, from")
            for size in FITTED:
                print(f"    {size // 1024:6} KiB {'':23} measured {spread(sums[size])}")
            print(beside(f"{PREDICTED // 1024:6} KiB", direct(ranks, PREDICTED, link), sums[PREDICTED]))
            print(beside(f"ResNet-50's {len(wanted)} buckets", sum(direct(ranks, size, link) for size in wanted), exchange_f32))
            slower = 1 / HOST.sums_of_16_bits - 1 / HOST.sums
            print(beside("the same in bf16", sum(direct(ranks, size // 2, link) + size / 2 * slower for size in wanted), exchange_bf16))
            sizes = [4 * elements for elements in saved_elements(folder / "all.safetensors")]
            sent = sum(direct(ranks, sum(sizes[at] for at in bucket), link) for bucket in buckets_of(sizes))
            print(f"    {NETWORK}: a step alone, {ranks} at once {'':8} measured {spread(alone)}")
            print(beside(f"{NETWORK}: a step together", statistics.median(alone) + sent, together))
    print(f"load {os.getloadavg()[0]:.1f} after; ResNet-50's buckets are the program's own")
    return []


def run_steps(build):
    """Lines of PLANS that differ from what the plans say now."""
    problems = []
    for (products, device), known in PLANS.items():
        forward, backward, update, marks = planned(build, device, ITEMS[products])
        line = f"({forward:.3f}, {backward:.3f}, {update:.3f}, ({', '.join(f'{mark:.3f}' for mark in marks)}))"
        print(f'    ("{products}", "{device}"): {line},')
        if any(abs(new / old - 1) > TOLERANCE for new, old in zip((forward, backward, update, *marks), (*known[:3], *known[3]))):
            problems.append(f"the plan of {ITEMS[products]} on {device} takes other times than PLANS says")
    return problems


def options_from(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_mutually_exclusive_group()
    for name, what in (("page", f"write {PAGE}"), ("check-page", "fail if the page differs"), ("steps", "the steps of ResNet-50 from plans"),
                       ("check", "predict and measure ranks on this machine")):
        ways.add_argument("--" + name, action="store_true", help=what)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where clnet is built")
    return parser.parse_args(words)


def main():
    options = options_from(None)
    if options.page or options.check_page:
        problems = run_page(ROOT, options.check_page)
    elif options.steps:
        problems = run_steps(options.build.resolve())
    elif options.check:
        problems = run_check(options.build.resolve())
    else:
        print("\n".join(page_lines()))
        return 0
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, OSError, ValueError) as failure:
        print(f"model_scale: {failure}", file=sys.stderr)
        sys.exit(1)

#!/usr/bin/env python3
"""Trains one network on a device of each OpenCL platform at once: as ranks of one job, and as devices of one process.
   tests/dist/platforms.py CLNET_INFO CLNET_TRAIN NAME...
Each NAME is a part of a platform's name. Losses of all steps and the weights at the end have to be those of the first device alone,
within rounding. OCL_ICD_VENDORS names the drivers."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

from few_images import write_images

# Weights and losses are of order 1, where f32 rounds by 6e-8. A step's sums, of up to 200 products, round in another order on each
# device: by less than 1e-6 in all. Twenty steps of SGD with momentum hand that on, and hardly let it grow.
TOLERANCE = 5e-6
STEPS = 20
RATE = 0.1
# What the tolerance must see: sums that are wrong by one part in a hundred.
FAULT = 0.01


def numbers(path):
    """The values of a file in the format of safetensors, by name."""
    content = path.read_bytes()
    size, = struct.unpack("<Q", content[:8])
    values = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        values[name] = struct.unpack(f"<{(end - begin) // 4}f", content[8 + size + begin:8 + size + end])
    return values


def selectors(info, names):
    """Of the first device of each platform, as in 0:1."""
    devices = json.loads(subprocess.run([info, "--json"], check=True, stdout=subprocess.PIPE).stdout)["devices"]
    found = []
    for name in names:
        of_it = [device for device in devices if name.lower() in device["platform"].lower()]
        if not of_it:
            sys.exit(f"failed: no platform's name has {name}: {sorted({device['platform'] for device in devices})}")
        found.append(of_it[0]["selector"])
    return found


class Trainings:
    def __init__(self, program, model, folder):
        self.program, self.model, self.folder = program, model, folder

    def train(self, name, devices, launcher=(), rate=RATE):
        """Losses of the steps, and weights."""
        log, weights = self.folder / f"{name}.jsonl", self.folder / f"{name}.safetensors"
        words = [*launcher, self.program, "--data", str(self.folder / "data"), "--model", self.model, "--batch-size", "24",
                 "--steps", str(STEPS), "--optimizer", "sgd", "--momentum", "0.9", "--lr", str(rate), "--devices", ",".join(devices),
                 "--log", str(log), "--save", str(weights)]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                              env=dict(os.environ, POCL_MAX_PTHREAD_COUNT="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
        if done.returncode != 0:
            sys.exit(f"failed: {name} ended with {done.returncode}\n{done.stdout.decode(errors='replace')}")
        entries = [json.loads(line) for line in log.read_text().splitlines()]
        losses = [entry["loss"] for entry in entries if "step" in entry]
        if len(losses) != STEPS:
            sys.exit(f"failed: {name} has {len(losses)} losses")
        return losses, numbers(weights)


def distances(found, wanted):
    """The largest difference of losses, and of weights."""
    return (max(abs(a - b) for a, b in zip(found[0], wanted[0])),
            max(abs(a - b) for name in wanted[1] for a, b in zip(found[1][name], wanted[1][name], strict=True)))


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    info, program, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    devices = selectors(info, names)
    launcher = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", str(len(devices))]
    if not shutil.which(launcher[0]):
        sys.exit("failed: mpirun.openmpi is not installed (Debian's openmpi-bin)")
    work = pathlib.Path(tempfile.mkdtemp())
    faults = 0
    try:
        write_images(work / "data", 480, 480)
        for model in ("mlp", "cnn"):
            trainings = Trainings(program, model, work)
            alone = trainings.train("alone", devices[:1])
            if sum(alone[0][-5:]) >= sum(alone[0][:5]):
                sys.exit(f"failed: {model} does not learn: {alone[0]}")
            ways = [("ranks", trainings.train("ranks", devices, launcher)), ("devices", trainings.train("devices", devices))]
            for name, found in ways:
                losses, weights = distances(found, alone)
                print(f"{model} on {', '.join(names)} as {name}: losses differ by {losses:.1e}, weights by {weights:.1e}", flush=True)
                if not max(losses, weights) <= TOLERANCE:
                    print(f"failed: more than {TOLERANCE:.0e}")
                    faults += 1
            fault = distances(trainings.train("fault", devices[:1], rate=(1 + FAULT) * RATE), alone)
            if min(fault) <= TOLERANCE:
                sys.exit(f"failed: {model} would not show a fault: {fault}")
        sys.exit(1 if faults else 0)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The work of clnet-bench's items in PyTorch on a GPU, for real_gpu.sh.

    bench_torch_cuda.py --json FILE [--device cuda] [--seconds 0.1] [--tf32 "ITEM..."] ITEM...

The work is that of peers/work.py, eager, with cudnn.benchmark and the faster of both layouts of images. It is timed as clnet-bench does it:
several runs share one wait, training and -infer begin in the host's memory (pinned here, which is PyTorch's best), -infer ends there.
All items come first in f32 (those ending in -f16 and -bf16 in that type, training by autocast), then those of --tf32 by the units that
round to 10 bits of mantissa. Each time is a line of FILE as soon as it is known.
"""
import argparse
import contextlib
import functools
import json
import statistics
import sys
import time

sys.dont_write_bytecode = True
import torch

from peers import work
from peers.items import parse

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def split(name):
    """The item's name without its type, and that type."""
    base, _, last = name.rpartition("-")
    return (base, DTYPES[last]) if last in DTYPES else (name, None)


class Bench:
    def __init__(self, device, seconds):
        self.device, self.seconds, self.cuda = device, seconds, device != "cpu"

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()

    def in_host(self, tensor):
        tensor = tensor.detach().cpu()
        return tensor.pin_memory() if self.cuda else tensor

    def upload(self, tensor, layout):
        tensor = tensor.to(self.device, non_blocking=True)
        return tensor.contiguous(memory_format=layout) if tensor.dim() == 4 else tensor

    def training(self, dtype, model, x, targets, optimizer, loss=work.functional.cross_entropy, layouts=False):
        """Stands for peers.work.training: a step that begins in the host's memory."""
        x, targets = self.in_host(x), self.in_host(targets)

        def prepare(compiled, layout):
            network = work.WithLoss(model.to(memory_format=layout), loss)
            update = optimizer(network.parameters())
            mixed = functools.partial(torch.autocast, self.device, dtype) if dtype else contextlib.nullcontext

            def run():
                inputs, wanted = self.upload(x, layout), self.upload(targets, torch.contiguous_format)
                with mixed():
                    value = network(inputs, wanted)
                update.zero_grad()
                value.backward()
                update.step()
            return run
        return work.Step(prepare, layouts)

    def inference(self, task, layout, dtype):
        module = task.module.to(dtype=dtype, memory_format=layout if task.layouts else torch.preserve_format)
        typed = [x.to(dtype) if dtype and x.is_floating_point() else x for x in task.inputs]
        inputs = [self.in_host(x) if task.from_host else self.upload(x, layout) if task.layouts else x for x in typed]

        @torch.inference_mode()
        def run():
            if task.from_host:
                return module(*(self.upload(x, layout) for x in inputs)).cpu()
            return module(*inputs)
        return run

    def sample(self, run):
        """Median and best milliseconds of a run."""
        for _ in range(3):
            run()
        self.wait()
        begin = time.perf_counter()
        run()
        self.wait()
        together = max(1, int(0.02 / max(time.perf_counter() - begin, 1e-6)))
        samples, begin = [], time.perf_counter()
        while len(samples) < 5 or time.perf_counter() - begin < self.seconds:
            start = time.perf_counter()
            for _ in range(together):
                run()
            self.wait()
            samples.append((time.perf_counter() - start) / together * 1e3)
        return statistics.median(samples), min(samples)

    def prepared(self, task, layout, dtype):
        return task.prepare(lambda module: module, layout) if isinstance(task, work.Step) else self.inference(task, layout, dtype)

    def measure(self, name):
        base, dtype = split(name)
        item = parse(base)
        if item is None:
            raise ValueError("peers/items.py does not know it")
        work.training = functools.partial(self.training, dtype)
        torch.set_default_device(self.device)
        task = work.work_of(item, "pytorch")
        if dtype and isinstance(task, work.Step) and item.what != "train":
            raise ValueError("is not measured in this type")
        found = []
        for layout in (torch.contiguous_format, torch.channels_last) if task.layouts else (torch.contiguous_format,):
            torch.set_default_device(self.device)
            run = self.prepared(task, layout, dtype)
            # Each call asks for a default device, which takes time: only where the work makes tensors as it runs.
            if item.kind not in ("random", "generation"):
                torch.set_default_device(None)
                try:
                    run()
                except RuntimeError:
                    torch.set_default_device(self.device)
            found.append(self.sample(run))
        return min(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("items", nargs="+", metavar="ITEM")
    parser.add_argument("--json", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--tf32", default="", help="items that are measured in TF32 besides")
    options = parser.parse_args()
    bench = Bench(options.device, options.seconds)
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, on {torch.cuda.get_device_name() if bench.cuda else 'the CPU'}", flush=True)
    torch.backends.cudnn.benchmark = True
    # On the device at once: values do not matter, but zeros would be too easy.
    work.tensors = lambda *shapes: [torch.rand(shape) for shape in shapes]
    modes = [(name, "f32") for name in options.items] + [(name, "tf32") for name in options.tf32.split() if bench.cuda]
    with open(options.json, "w") as file:
        for name, mode in modes:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"
            entry = {"name": name, "mode": mode}
            try:
                entry["median_ms"], entry["best_ms"] = bench.measure(name)
            except Exception as problem:  # one item's failure is no other's
                entry["problem"] = f"{type(problem).__name__}: {str(problem).partition(chr(10))[0][:150]}"
            file.write(json.dumps(entry) + "\n")
            file.flush()


if __name__ == "__main__":
    main()

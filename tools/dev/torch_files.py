#!/usr/bin/env python3
"""Compares weights that clnet-convert takes from PyTorch's files, and writes to them, bit by bit.

  tools/dev/torch_files.py [--convert build/tools/clnet-convert] [--random N] [--seed S]

Needs torch for the Python that runs it; networks of torchvision, safetensors and onnx take part where they can be imported. N random
checkpoints (100) have nested dicts, all dtypes, views, shared storages and every version of Python's pickles. Each goes from .pt to
.safetensors, to .npz, and to .pt again; bf16 is f32 in .npz. The exit code is 1 where a bit differs.
"""
import argparse
import collections
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import numpy
import torch

WIDER = {torch.int16: torch.int32}
for narrow, wide in (("uint16", torch.int32), ("uint32", torch.int64), ("uint64", torch.int64)):
    if hasattr(torch, narrow):
        WIDER[getattr(torch, narrow)] = wide
NAMES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64, "I64": torch.int64,
         "I32": torch.int32, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
DTYPES = list(NAMES.values()) + list(WIDER)


def flat(value, prefix=""):
    """Names with dots and tensors, as clnet has them."""
    if isinstance(value, torch.Tensor):
        yield prefix, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)):
        for key, item in enumerate(value):
            yield from flat(item, f"{prefix}.{key}" if prefix else str(key))


def expected(checkpoint):
    found = {}
    for name, tensor in flat(checkpoint):
        tensor = tensor.detach()
        found[name] = tensor.to(WIDER.get(tensor.dtype, tensor.dtype)).contiguous()
    return found


def read_safetensors(path):
    """Without the package, which may be absent: the format is short."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    found = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = bytearray(content[8 + length + begin:8 + length + end])
        dtype = NAMES[entry["dtype"]]
        found[name] = (torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)).reshape(entry["shape"])
    return found


def bits(tensor):
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype)
    flat.copy_(tensor.detach().reshape(-1))
    return flat.view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def differences(what, got, wanted):
    if list(got) != list(wanted):
        yield f"{what}: names {sorted(set(got) ^ set(wanted)) or 'in another order'}"
        return
    for name, tensor in wanted.items():
        if got[name].dtype != tensor.dtype or got[name].shape != tensor.shape or bits(got[name]) != bits(tensor):
            yield f"{what}: {name} differs: {got[name].dtype} {tuple(got[name].shape)}"


def check(convert, folder, title, checkpoint, **options):
    """Lines of what differs."""
    def run(*arguments):
        done = subprocess.run([convert, *arguments], capture_output=True, text=True, check=False, cwd=folder)
        return [] if done.returncode == 0 else [f"{title}: {' '.join(arguments)}: {done.stderr.strip()}"]

    torch.save(checkpoint, os.path.join(folder, "a.pt"), **options)
    wanted = expected(checkpoint)
    wrong = run("a.pt", "a.safetensors") + run("a.safetensors", "a.npz") + run("a.npz", "b.safetensors") + \
        run("a.safetensors", "b.pt") + run("b.pt", "c.safetensors")
    if wrong:
        return wrong
    wrong += differences(f"{title}: safetensors", read_safetensors(os.path.join(folder, "a.safetensors")), wanted)
    wrong += differences(f"{title}: torch.load", torch.load(os.path.join(folder, "b.pt"), weights_only=True), wanted)
    wrong += differences(f"{title}: .pt of clnet", read_safetensors(os.path.join(folder, "c.safetensors")), wanted)
    as_numpy = {name: tensor.float() if tensor.dtype == torch.bfloat16 else tensor for name, tensor in wanted.items()}
    with numpy.load(os.path.join(folder, "a.npz")) as arrays:
        wrong += differences(f"{title}: numpy.load", {name: torch.from_numpy(arrays[name]) for name in arrays.files}, as_numpy)
    wrong += differences(f"{title}: .npz", read_safetensors(os.path.join(folder, "b.safetensors")), as_numpy)
    return wrong


def random_tensor(generator):
    shape = [generator.randint(0, 5) for _ in range(generator.randint(0, 4))]
    dtype = generator.choice(DTYPES)
    values = torch.randn([2 * extent + 1 for extent in shape]) * 40
    values = (values > 0) if dtype == torch.bool else values.abs().to(dtype)
    kind = generator.randint(0, 5)
    if dtype not in (torch.float32, torch.float64, torch.int64):
        kind = 0 if kind < 4 else kind  # not all views are there for the unsigned ones
    if kind == 1 and shape:
        values = values[tuple(slice(0, None, 2) for _ in shape)]
    elif kind == 2 and len(shape) > 1:
        values = values.transpose(0, len(shape) - 1)
    elif kind == 3:
        values = values.unsqueeze(0).expand(3, *values.shape)
    elif kind == 4 and dtype.is_floating_point:
        values = torch.nn.Parameter(values, requires_grad=generator.random() < 0.5)
    return values


def random_checkpoint(generator, depth=0):
    made = collections.OrderedDict() if generator.random() < 0.5 else {}
    shared = random_tensor(generator)
    for i in range(generator.randint(1, 6)):
        kind = generator.randint(0, 9)
        if kind < 6:
            item = random_tensor(generator)
        elif kind == 6:
            item = shared
        elif kind == 7:
            item = generator.choice([None, 3, 2**40, 2**90, -5, 0.25, "text", True, b"bytes", torch.float16, torch.Size([2, 3]),
                                     torch.device("cpu"), (1, 2), [], {}])
        elif depth < 3:
            item = random_checkpoint(generator, depth + 1)
            item = [item, random_tensor(generator)] if generator.random() < 0.3 else item
        else:
            item = (random_tensor(generator), random_tensor(generator))
        made[i if generator.random() < 0.2 else f"name{i}"] = item
    return made


def trained():
    """Weights and the state of an optimizer, after a step."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(144, 2))
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.randn(2, 3, 8, 8)).sum().backward()
    adam.step()
    return {"state_dict": model.state_dict(), "optimizer": adam.state_dict(), "epoch": 3, "best": 0.5}


def networks():
    layers = torch.nn
    yield "LSTM", layers.LSTM(5, 7, 2, bidirectional=True)
    yield "Transformer", layers.Transformer(8, 2, 1, 1, 16)
    try:
        import torchvision
    except (ImportError, RuntimeError):
        print("torchvision is not there: without its networks")
        return
    for name in ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "squeezenet1_1", "vit_b_16"):
        if hasattr(torchvision.models, name):
            yield name, getattr(torchvision.models, name)()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--convert", default="build/tools/clnet-convert")
    parser.add_argument("--random", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    convert = os.path.abspath(options.convert)
    wrong, count = [], 0
    torch.manual_seed(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        cases = [("a trained network", trained())] + [(name, network.state_dict()) for name, network in networks()]
        for name, state in cases[1:]:
            cases.append((f"{name} in halves", {key: value.half() if value.is_floating_point() else value for key, value in state.items()}))
        for title, checkpoint in cases:
            wrong += check(convert, folder, title, checkpoint)
            count += 1
        for number in range(options.random):
            generator = random.Random(options.seed * 1000003 + number)
            torch.manual_seed(number)
            wrong += check(convert, folder, f"random {number}", random_checkpoint(generator), pickle_protocol=generator.choice([2, 2, 3, 4, 5]))
            count += 1
    for line in wrong:
        print(line)
    print(f"torch files: PyTorch {torch.__version__}, {count} checkpoints, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

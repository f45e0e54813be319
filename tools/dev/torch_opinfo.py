#!/usr/bin/env python3
"""Makes a folder of cases for build/tests/torch_reference from PyTorch's own samples (OpInfo's sample_inputs).

  tools/dev/torch_opinfo.py OUT --seed N [--ops add,softmax] [--samples K] [--reference build/tests/torch_reference]

Needs torch, numpy and expecttest of PyPI for the Python that runs it. `torch_reference --names` says which operations have an
adapter; --ops takes some of them. Each operation gives K of its samples (8), or all with 0, which the seed chooses. Inputs are
rounded to f32, results and gradients are computed in f64. What cannot be written is counted and printed with the reason.

A case has "op", "args" and "kwargs" as PyTorch's function has them, with tensors as {"tensor": "a0"} and dtypes as {"dtype": "f32"};
its file has in.a0, out.y0, gout.y0 and grad.a0. docs/developer/testing.md describes how to run a folder.
"""
import argparse
import collections
import json
import math
import os
import random
import struct
import subprocess
import sys
import warnings

DTYPES = {"float64": "F32", "float32": "F32", "int64": "I64", "int32": "I32", "uint8": "U8", "int8": "I8", "bool": "BOOL"}
NAMES = {"F32": "f32", "I64": "i64", "I32": "i32", "U8": "u8", "I8": "i8", "BOOL": "bool"}
# Where PyTorch places a result, and how; not which.
PLACES = {"device", "layout", "pin_memory", "generator", "memory_format"}
# clnet's logic takes bool alone, for which PyTorch takes any dtype.
OF_BOOL = {"logical_and", "logical_or", "logical_not", "logical_xor"}
LIMIT = 1 << 16


class Skip(Exception):
    """Why a sample cannot be a case."""


def safetensors(tensors):
    """The bytes of a file, from name -> (dtype, shape, bytes)."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def written(value, tensors, is_tensor=lambda value: False, dtype_name=lambda value: None):
    """An argument as JSON; tensors in it are added to the list and named by their place there."""
    if is_tensor(value):
        tensors.append(value)
        return {"tensor": f"a{len(tensors) - 1}"}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return [written(one, tensors, is_tensor, dtype_name) for one in value]
    if isinstance(value, slice):
        return {"slice": [written(part, tensors, is_tensor, dtype_name) for part in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if dtype_name(value) is not None:
        name = DTYPES.get(dtype_name(value))
        if name is None:
            raise Skip(f"dtype {dtype_name(value)}")
        return {"dtype": NAMES[name]}
    raise Skip(f"an argument of type {type(value).__name__}")


def drawn(samples, count, chance):
    """`count` of the samples in their order; all with 0."""
    if count == 0 or len(samples) <= count:
        return samples
    return [samples[i] for i in sorted(chance.sample(range(len(samples)), count))]


def error(got, want):
    """The largest difference of two lists of numbers against the largest number wanted, at least 1, as torch_reference has it."""
    largest, worst = 1.0, 0.0
    for g, w in zip(got, want):
        if math.isfinite(w):
            largest = max(largest, abs(w))
            if math.isfinite(g):
                worst = max(worst, abs(g - w))
    return worst / largest


class Maker:
    """Makes the cases of one seed with PyTorch."""

    def __init__(self, folder, seed):
        import torch
        self.torch, self.folder, self.seed = torch, folder, seed
        self.cases, self.skipped = [], collections.Counter()

    def dtype_of(self, op):
        torch = self.torch
        order = [torch.bool] if op.name in OF_BOOL else [torch.float64, torch.int64, torch.bool]
        for dtype in order:
            if dtype in op.dtypes:
                return dtype
        raise Skip("no dtype that clnet has")

    def samples(self, op, count):
        dtype = self.dtype_of(op)
        # By the operation's name, too: each has the same samples whichever others are made.
        chance = random.Random(f"{self.seed} {op.name} {op.variant_test_name}")
        self.torch.manual_seed(chance.randrange(1 << 31))
        random.seed(chance.randrange(1 << 31))
        sys.modules["numpy"].random.seed(chance.randrange(1 << 31))
        grad = op.supports_autograd and dtype == self.torch.float64
        samples = []
        for sample in op.sample_inputs("cpu", dtype, requires_grad=grad, set_seed=False):
            samples.append(sample)
            if len(samples) == 2000:
                break
        return drawn(samples, count, chance)

    def name_of_dtype(self, value):
        return str(value).removeprefix("torch.") if isinstance(value, self.torch.dtype) else None

    def plain(self, tensor):
        """A leaf of its own with the f32 values, which both precisions start from."""
        torch = self.torch
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise Skip("a sparse tensor")
        name = self.name_of_dtype(tensor.dtype)
        if name not in DTYPES:
            raise Skip(f"a tensor of {name}")
        if tensor.numel() > LIMIT:
            raise Skip(f"more than {LIMIT} elements")
        return tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).to(
            torch.float32 if tensor.is_floating_point() else tensor.dtype)

    def rebuilt(self, value, tensors):
        """The argument with new tensors in place of the sample's, in the order of written()."""
        if isinstance(value, self.torch.Tensor):
            return next(tensors)
        if isinstance(value, (list, tuple)):
            return [self.rebuilt(one, tensors) for one in value] if isinstance(value, list) else \
                tuple(self.rebuilt(one, tensors) for one in value)
        if isinstance(value, slice):
            return slice(*(self.rebuilt(part, tensors) for part in (value.start, value.stop, value.step)))
        return value

    def in_precision(self, value, floating):
        """dtype=torch.float64 stands for the precision that is computed in."""
        if isinstance(value, self.torch.dtype) and value in (self.torch.float64, self.torch.float32):
            return floating
        if isinstance(value, (list, tuple)) and not isinstance(value, self.torch.Size):
            return type(value)(self.in_precision(one, floating) for one in value)
        return value

    def compute(self, op, args, kwargs, plain, wants, floating, output_gradients):
        """Outputs and gradients; `wants` says of which inputs."""
        torch = self.torch
        # Clones: batch_norm changes its running statistics.
        leaves = [t.clone().to(floating) if t.is_floating_point() else t.clone() for t in plain]
        for leaf, want in zip(leaves, wants):
            leaf.requires_grad_(want)
        tensors = iter(leaves)
        args = self.in_precision(self.rebuilt(args, tensors), floating)
        kwargs = {name: self.in_precision(self.rebuilt(value, tensors), floating) for name, value in kwargs.items()}
        torch.manual_seed(0)
        result = op(*args, **kwargs)
        outputs = []
        self.flatten(result, outputs)
        for name, value in ((self.name_of_dtype(o.dtype), o) for o in outputs):
            if value.layout != torch.strided:
                raise Skip("a sparse result")
            if name not in DTYPES:
                raise Skip(f"a result of {name}")
            if value.numel() > LIMIT:
                raise Skip(f"a result of more than {LIMIT} elements")
        if not outputs:
            raise Skip("no result that is a tensor")
        deep = [o for o in outputs if o.requires_grad and o.is_floating_point()]
        inputs = [leaf for leaf, want in zip(leaves, wants) if want]
        if not deep or not inputs:
            return outputs, {}, [None] * len(leaves)
        if output_gradients is None:
            output_gradients = {i: torch.randn_like(o.detach()).to(torch.float32)
                                for i, o in enumerate(outputs) if o.requires_grad and o.is_floating_point()}
        computed = iter(torch.autograd.grad([outputs[i] for i in output_gradients], inputs,
                                            [g.to(outputs[i].dtype) for i, g in output_gradients.items()], allow_unused=True))
        return outputs, output_gradients, [next(computed) if want else None for want in wants]

    def flatten(self, result, outputs):
        torch = self.torch
        if isinstance(result, torch.Tensor):
            outputs.append(result)
        elif isinstance(result, (list, tuple)):
            for one in result:
                self.flatten(one, outputs)
        elif isinstance(result, (bool, int, float)):
            outputs.append(torch.tensor(result))
        elif result is not None:
            raise Skip(f"a result of type {type(result).__name__}")

    def stored(self, tensor):
        name = DTYPES[self.name_of_dtype(tensor.dtype)]
        value = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
        return name, tuple(value.shape), (value.to(self.torch.float32) if name == "F32" else value).numpy().tobytes()

    def largest_error(self, got, want):
        """Of lists of tensors."""
        return max([error(g.detach().double().flatten().tolist(), w.detach().double().flatten().tolist())
                    for g, w in zip(got, want) if g is not None and w is not None], default=0.0)

    def case(self, op, sample, name):
        torch = self.torch
        kwargs = dict(sample.kwargs)
        if kwargs.get("out") is not None:
            raise Skip("out=")
        for place in PLACES & set(kwargs):
            del kwargs[place]
        given, args = [], [sample.input, *sample.args]

        def is_tensor(value):
            return isinstance(value, torch.Tensor)

        def as_json(value):
            return written(value, given, is_tensor, self.name_of_dtype)
        args_json = [as_json(value) for value in args]
        kwargs_json = {key: as_json(value) for key, value in kwargs.items()}
        plain = [self.plain(tensor) for tensor in given]
        wants = [t.requires_grad and t.is_floating_point() for i, t in enumerate(given)]
        outputs, output_gradients, gradients = self.compute(op, args, kwargs, plain, wants, torch.float64, None)
        try:
            single = self.compute(op, args, kwargs, plain, wants, torch.float32, output_gradients)
        except (RuntimeError, TypeError, NotImplementedError):
            raise Skip("not there in f32") from None
        errors = [self.largest_error(single[0], outputs), self.largest_error(single[2], gradients)]
        self.errors_nearby(op, args, kwargs, plain, wants, output_gradients, errors)
        tensors = {f"in.a{i}": self.stored(t) for i, t in enumerate(plain)}
        tensors |= {f"out.y{i}": self.stored(t) for i, t in enumerate(outputs)}
        tensors |= {f"gout.y{i}": self.stored(t) for i, t in output_gradients.items()}
        tensors |= {f"grad.a{i}": self.stored(t) for i, t in enumerate(gradients) if t is not None}
        file = name + ".safetensors"
        with open(os.path.join(self.folder, file), "wb") as out:
            out.write(safetensors(tensors))
        self.cases.append({"name": name, "op": op.name, "args": args_json, "kwargs": kwargs_json, "file": file,
                           "f32_out_err": errors[0], "f32_grad_err": errors[1]})

    def errors_nearby(self, op, args, kwargs, plain, wants, output_gradients, errors):
        """Raises the errors to those of three neighbours of the inputs: f32 is exact by chance at some."""
        torch = self.torch
        for _ in range(3):
            near = [t * (1 - torch.rand_like(t) * 2**-18) if t.is_floating_point() else t for t in plain]
            try:
                double, single = (self.compute(op, args, kwargs, near, wants, floating, output_gradients)
                                  for floating in (torch.float64, torch.float32))
                errors[0] = max(errors[0], self.largest_error(single[0], double[0]))
                errors[1] = max(errors[1], self.largest_error(single[2], double[2]))
            except (Skip, RuntimeError, ValueError, TypeError):
                continue

    def make(self, op, count):
        label = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        try:
            samples = self.samples(op, count)
        except Exception as reason:  # PyTorch's samplers raise anything: skips of unittest, assertions
            self.skipped[f"{label}: no samples: {self.line(reason)}"] += 1
            return
        for i, sample in enumerate(samples):
            try:
                self.case(op, sample, f"{label}.{i}")
            except Skip as reason:
                self.skipped[f"{label}: {reason}"] += 1
            except Exception as reason:  # a sample that PyTorch itself refuses
                self.skipped[f"{label}: PyTorch: {self.line(reason)}"] += 1

    @staticmethod
    def line(reason):
        return (str(reason).splitlines() or [type(reason).__name__])[0][:100]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", metavar="OUT")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ops", help="names with commas between them")
    parser.add_argument("--samples", type=int, default=8, help="of each operation at most; 0: all")
    parser.add_argument("--reference", default="build/tests/torch_reference", help="the program that knows the names")
    options = parser.parse_args()
    if options.samples < 0:
        parser.error("--samples is negative")
    names = options.ops.split(",") if options.ops else \
        subprocess.run([options.reference, "--names"], check=True, capture_output=True, text=True).stdout.split()
    warnings.filterwarnings("ignore")
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    os.makedirs(options.folder, exist_ok=True)
    maker = Maker(options.folder, options.seed)
    for op in op_db:
        if op.name in names:
            maker.make(op, options.samples)
    note = "inputs float32; outputs and gradients computed in float64 and rounded to float32"
    with open(os.path.join(options.folder, "manifest.json"), "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "seed": options.seed, "note": note, "cases": maker.cases}, out, indent=1)
    for reason, count in sorted(maker.skipped.items()):
        print(f"skipped {count}: {reason}")
    unknown = sorted(set(names) - {op.name for op in op_db})
    if unknown:
        print("no OpInfo: " + " ".join(unknown))
    print(f"{len({case['op'] for case in maker.cases})} operations, {len(maker.cases)} cases, "
          f"{sum(maker.skipped.values())} samples skipped")
    return 0 if maker.cases else 1


if __name__ == "__main__":
    sys.exit(main())

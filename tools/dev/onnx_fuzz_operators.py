"""Operators for tools/dev/onnx_fuzz.py: each adds a node, with the nodes that make its inputs fit."""

import numpy as np
from onnx import TensorProto, helper

from onnx_fuzz_graph import BOOL, FLOAT, INT32, INT64, LARGEST, MOST_ELEMENTS, Refused, Value, broadcasts, compute

# Operators: functions of a Graph, by name. Several may share one.
OPERATORS = {}


def operator(*names, since=1, until=99):
    def take(function):
        for name in names:
            OPERATORS[name] = (function, since, until)
        return function

    return take


def within(low, high):
    return lambda value: value.array.size == 0 or (value.array.min() > low and value.array.max() < high)


@operator("Abs", "Neg", "Sin", "Cos", "Atan", "Tanh", "Asinh", "Sigmoid", "HardSigmoid", "Relu", "LeakyRelu", "Elu", "Selu", "Softplus",
          "Softsign", "Erf", "Identity", "Celu", "Exp", "Sinh", "Cosh")
def unary(g, name):
    x = g.pick(good=within(-20, 20) if name not in ("Exp", "Sinh", "Cosh") else within(-4, 4))
    attributes = {}
    if g.chance(0.5):
        attributes = {"LeakyRelu": {"alpha": 0.2}, "Elu": {"alpha": 0.7}, "Selu": {"alpha": 1.2, "gamma": 0.9}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
                      "Celu": {"alpha": 0.5}}.get(name, {})
    exact = name in ("Abs", "Neg", "Relu", "Identity")
    g.add(name, [x], exact=None if exact else False, **attributes)


OPERATORS["Celu"] = (unary, 12, 99)


@operator("HardSwish", since=14)
@operator("Mish", since=18)
def late_unary(g, name):
    g.add(name, [g.pick(good=within(-20, 20))], exact=False)


@operator("Gelu", since=20)
def gelu(g, name):
    g.add(name, [g.pick(good=within(-20, 20))], exact=False, approximate=g.random.choice([None, "none", "tanh"]))


@operator("Log", "Sqrt", "Reciprocal")
def positive(g, name):
    x = g.pick(good=within(-20, 20))
    x = g.add("Add", [g.add("Abs", [x]), g.const(0.5, FLOAT)], exact=False)
    g.add(name, [x], exact=False)


@operator("Asin", "Acos", "Atanh")
def inside_one(g, name):
    x = g.add("Mul", [g.add("Tanh", [g.pick(good=within(-20, 20))], exact=False), g.const(0.9, FLOAT)], exact=False)
    g.add(name, [x], exact=False)


@operator("Acosh")
def above_one(g, name):
    g.add(name, [g.add("Add", [g.add("Abs", [g.pick(good=within(-20, 20))]), g.const(1.25, FLOAT)], exact=False)], exact=False)


@operator("Tan")
def tangent(g, name):
    g.add(name, [g.pick(good=within(-1.4, 1.4))], exact=False)


@operator("Sign", "Floor", "Ceil", "Round", "ThresholdedRelu", "Shrink")
def stepped(g, name):
    x = g.pick(exact=True)
    attributes = {}
    if g.chance(0.7):
        attributes = {"ThresholdedRelu": {"alpha": 0.7}, "Shrink": {"lambd": 0.8, "bias": 0.3}}.get(name, {})
    g.add(name, [x], exact=True if name in ("Sign", "Floor", "Ceil", "Round") else False, **attributes)


@operator("Clip")
def clip(g, name):
    dtype = g.random.choice([FLOAT, FLOAT, INT64, INT32]) if g.opset >= 12 else FLOAT
    low = g.const(-1, dtype) if g.chance(0.7) else None
    high = g.const(2, dtype) if g.chance(0.7) else None
    g.add(name, [g.pick([dtype]), low, high])


@operator("PRelu")
def prelu(g, name):
    x = g.pick(ranks=range(1, 5))
    g.add(name, [x, g.fresh(FLOAT, [1 if g.chance(0.4) else e for e in x.shape])], exact=False)


@operator("Not")
def negation(g, name):
    g.add(name, [g.pick([BOOL])])


@operator("IsNaN", "IsInf")
def special(g, name):
    g.add(name, [g.pick()], exact=True)


@operator("Cast")
def cast(g, name):
    to = g.random.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.UINT8, TensorProto.INT8,
                          TensorProto.DOUBLE, TensorProto.FLOAT16])
    x = g.pick([FLOAT, INT64, INT32, BOOL], exact=to != TensorProto.FLOAT)
    if to == TensorProto.UINT8:
        x = g.add("Abs", [x])
    y = g.add(name, [x], exact=to not in (TensorProto.FLOAT16,), to=to)
    if to in (TensorProto.DOUBLE, TensorProto.FLOAT16):
        g.add("Cast", [y], exact=to == TensorProto.DOUBLE, to=TensorProto.FLOAT)


@operator("Add", "Sub", "Mul", "Max", "Min")
def arithmetic(g, name):
    x = g.pick([FLOAT, FLOAT, FLOAT, INT64, INT32] if g.opset >= 14 or name not in ("Max", "Min") else [FLOAT])
    pair = [x, g.partner(x)]
    g.random.shuffle(pair)
    g.add(name, pair, exact=None if name in ("Max", "Min") else x.dtype != FLOAT)


@operator("Div")
def division(g, name):
    x = g.pick([FLOAT, FLOAT, INT64, INT32])
    array = g.numpy.uniform(0.5, 4, [1 if g.chance(0.3) else e for e in x.shape])
    if x.dtype != FLOAT:
        array = (np.round(array) + 1) * g.random.choice([-1, 1])
    g.add(name, [x, g.keep(Value(g.name(), np.asarray(array, x.dtype), True, g.chance(0.5)))], exact=x.dtype != FLOAT)


@operator("Mod")
def modulo(g, name):
    x = g.pick([INT64, INT32])
    array = (g.numpy.integers(1, 6, [1 if g.chance(0.3) else e for e in x.shape])) * g.random.choice([-1, 1])
    y = g.keep(Value(g.name(), np.asarray(array, x.dtype), True, g.chance(0.5)))
    g.add(name, [x, y], fmod=g.random.choice([None, 0, 1]))


@operator("Pow")
def power(g, name):
    x = g.pick(good=within(-5, 5))
    if g.chance(0.5):
        g.add(name, [x, g.const(g.random.choice([1, 2, 3]), g.random.choice([FLOAT, INT64] if g.opset >= 12 else [FLOAT]))], exact=False)
    else:
        base = g.add("Add", [g.add("Abs", [x]), g.const(0.5, FLOAT)], exact=False)
        g.add(name, [base, g.fresh(FLOAT, [1 if g.chance(0.3) else e for e in x.shape], low=-2, high=2)], exact=False)


@operator("Mean", "Sum")
def several(g, name):
    x = g.pick()
    g.add(name, [x] + [g.partner(x) for _ in range(g.random.randint(0, 3))], exact=False)


@operator("And", "Or", "Xor")
def logic(g, name):
    x = g.pick([BOOL])
    g.add(name, [x, g.partner(x)])


@operator("Equal", "Greater", "Less")
def compare(g, name):
    x = g.pick([FLOAT, INT64, INT32] + ([BOOL] if name == "Equal" else []), exact=True)
    g.add(name, [x, g.partner(x, exact=True)])


@operator("GreaterOrEqual", "LessOrEqual", since=12)
def compare_or_equal(g, name):
    compare(g, name)


@operator("Where")
def where(g, name):
    x = g.pick([FLOAT, FLOAT, INT64])
    y = g.partner(x)
    shape = np.broadcast_shapes(x.shape, y.shape)
    shape = [1 if g.chance(0.3) else e for e in shape]
    condition = g.pick([BOOL], good=lambda v: broadcasts(v.shape, shape)) if g.chance(0.5) else g.fresh(BOOL, shape)
    g.add(name, [condition, x, y])


@operator("BitShift")
def shift(g, name):
    x = g.fresh(np.uint8)
    g.add(name, [x, g.fresh(np.uint8, x.shape, high=1.5)], direction=g.random.choice(["LEFT", "RIGHT"]))


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def bitwise(g, name):
    x = g.pick([INT64, INT32])
    g.add(name, [x, g.partner(x)])


@operator("BitwiseNot", since=18)
def bitwise_not(g, name):
    g.add(name, [g.pick([INT64, INT32])])


@operator("MatMul")
def matmul(g, name):
    a = g.pick(ranks=range(1, 5), good=within(-12, 12))
    k = a.shape[-1]
    b = g.random.choice([(k,), (k, g.random.randint(1, 9)), a.shape[:-2] + (k, g.random.randint(1, 6)), (1,) * max(0, a.rank - 2) + (k, 3)])
    g.add(name, [a, g.fresh(FLOAT, b)], exact=False)


@operator("Gemm")
def gemm(g, name):
    a = g.pick(ranks=[2], good=within(-12, 12))
    left, right = g.random.randint(0, 1), g.random.randint(0, 1)
    k, m, n = a.shape[0 if left else 1], a.shape[1 if left else 0], g.random.randint(1, 9)
    c = g.fresh(FLOAT, g.random.choice([(m, n), (n,), (1, n), (m, 1), (), (1,)])) if g.chance(0.7) else None
    numbers = {"alpha": 0.5, "beta": 0.7} if g.chance(0.4) else {}
    g.add(name, [a, g.fresh(FLOAT, (n, k) if right else (k, n)), c], exact=False, transA=left, transB=right, **numbers)


@operator("Einsum", since=12)
def einsum(g, name):
    a = g.pick(ranks=[2, 3], good=within(-12, 12))
    if a.rank == 2:
        i, j = a.shape
        equation, shape = g.random.choice([("ij,jk->ik", (j, 3)), ("ij,ij->i", (i, j)), ("ij,kj->ki", (4, j)), ("ij,j->i", (j,)), ("ij,ij->", (i, j)), ("ij,k->kij", (2,))])
    else:
        b, i, j = a.shape
        equation, shape = g.random.choice([("bij,bjk->bik", (b, j, 2)), ("bij,kj->bik", (4, j)), ("...ij,jk->...ik", (j, 3)), ("bij,bij->b", (b, i, j))])
    g.add(name, [a, g.fresh(FLOAT, shape)], exact=False, equation=equation)


def image(g, dims=None, least=3):
    dims = g.random.choice([1, 2, 2, 2, 3]) if dims is None else dims
    good = lambda v: all(e >= least for e in v.shape[2:]) and within(-15, 15)(v)
    found = [v for v in g.values if v.dtype == FLOAT and v.rank == dims + 2 and good(v)]
    if found and g.chance(0.8):
        return g.random.choice(found)
    return g.fresh(FLOAT, [g.random.randint(1, 2), g.random.choice([1, 2, 3, 4, 6])] + [g.random.randint(least, 9 if dims < 3 else 5) for _ in range(dims)], False)


def window(g, x, kernel, attributes, pads=True):
    dims = x.rank - 2
    attributes["strides"] = [g.random.randint(1, 3) for _ in range(dims)] if g.chance(0.5) else None
    # Of SAME with strides beyond the kernel onnxruntime begins behind the first element.
    fits = all(s <= k for s, k in zip(attributes["strides"] or [1] * dims, kernel))
    if g.chance(0.25):
        attributes["auto_pad"] = g.random.choice(["SAME_UPPER", "SAME_LOWER", "VALID"] if fits else ["VALID"])
    elif pads and g.chance(0.6):
        attributes["pads"] = [g.random.randint(0, max(0, kernel[d % dims] - 1)) for d in range(2 * dims)]
    return attributes


@operator("Conv")
def conv(g, name):
    x = image(g)
    dims, channels = x.rank - 2, x.shape[1]
    group = g.random.choice([1, 1, channels] + [d for d in (2, 3) if channels % d == 0])
    kernel = [g.random.randint(1, min(3, e)) for e in x.shape[2:]]
    w = g.fresh(FLOAT, [group * g.random.randint(1, 3), channels // group] + kernel, low=-1, high=1)
    b = g.fresh(FLOAT, [w.shape[0]]) if g.chance(0.6) else None
    attributes = window(g, x, kernel, {"group": group if group > 1 or g.chance(0.3) else None, "kernel_shape": kernel if g.chance(0.6) else None})
    if "auto_pad" not in attributes and g.chance(0.3):
        attributes["dilations"] = [g.random.randint(1, 2) for _ in range(dims)]
    g.add(name, [x, w, b], exact=False, **attributes)


@operator("ConvTranspose")
def conv_transpose(g, name):
    x = image(g, g.random.choice([1, 2, 2, 3]), 2)
    dims, channels = x.rank - 2, x.shape[1]
    group = g.random.choice([1, 1, channels])
    kernel = [g.random.randint(1, 3) for _ in range(dims)]
    w = g.fresh(FLOAT, [channels, g.random.randint(1, 3)] + kernel, low=-1, high=1)
    b = g.fresh(FLOAT, [w.shape[1] * group]) if g.chance(0.5) else None
    attributes = {"group": group, "strides": [g.random.randint(1, 3) for _ in range(dims)] if g.chance(0.6) else None}
    # Of SAME with strides beyond the kernel the specification and onnxruntime have other shapes.
    fits = all(s <= k for s, k in zip(attributes["strides"] or [1] * dims, kernel))
    if g.chance(0.2):
        attributes["auto_pad"] = g.random.choice(["SAME_UPPER", "SAME_LOWER", "VALID"] if fits else ["VALID"])
    elif g.chance(0.5):
        attributes["pads"] = [g.random.randint(0, kernel[d % dims] - 1) for d in range(2 * dims)]
    if attributes["strides"] and g.chance(0.4):
        attributes["output_padding"] = [g.random.randint(0, s - 1) for s in attributes["strides"]]
    if "auto_pad" not in attributes and g.chance(0.3):
        attributes["dilations"] = [g.random.randint(1, 2) for _ in range(dims)]
    g.add(name, [x, w, b], exact=False, **attributes)


@operator("MaxPool", "AveragePool", "LpPool")
def pool(g, name):
    x = image(g)
    kernel = [g.random.randint(1, min(3, e)) for e in x.shape[2:]]
    attributes = window(g, x, kernel, {"kernel_shape": kernel})
    if name != "LpPool" and g.chance(0.4):
        attributes["ceil_mode"] = 1
    if name == "AveragePool":
        attributes["count_include_pad"] = g.random.choice([None, 0, 1])
    if name == "LpPool":
        attributes["p"] = g.random.choice([None, 1, 2, 3])
    if name == "MaxPool" and "auto_pad" not in attributes and g.chance(0.3):
        attributes["dilations"] = [g.random.randint(1, 2) for _ in kernel]
    g.add(name, [x], exact=None if name == "MaxPool" else False, **attributes)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(g, name):
    g.add(name, [image(g)], exact=False)


@operator("BatchNormalization")
def batch_norm(g, name):
    x = image(g) if g.chance(0.8) else g.pick(ranks=[2])
    c = x.shape[1]
    numbers = [g.fresh(FLOAT, [c]) for _ in range(3)] + [g.fresh(FLOAT, [c], low=0.5, high=3)]
    g.add(name, [x] + numbers, exact=False, epsilon=g.random.choice([None, 1e-3]))


@operator("InstanceNormalization")
def instance_norm(g, name):
    x = image(g)
    g.add(name, [x, g.fresh(FLOAT, [x.shape[1]]), g.fresh(FLOAT, [x.shape[1]])], exact=False, epsilon=g.random.choice([None, 1e-3]))


@operator("LayerNormalization", since=17)
def layer_norm(g, name):
    x = g.pick(ranks=range(1, 5), good=lambda v: v.shape[-1] > 1 and within(-20, 20)(v))
    axis = g.axis(x.rank)
    shape = x.shape[axis:]
    g.add(name, [x, g.fresh(FLOAT, shape)] + ([g.fresh(FLOAT, shape)] if g.chance(0.6) else []), exact=False, axis=axis, epsilon=1e-2)


@operator("GroupNormalization", since=21)
def group_norm(g, name):
    x = image(g)
    groups = g.random.choice([d for d in range(1, x.shape[1] + 1) if x.shape[1] % d == 0])
    g.add(name, [x, g.fresh(FLOAT, [x.shape[1]]), g.fresh(FLOAT, [x.shape[1]])], exact=False, num_groups=groups, epsilon=1e-2)


@operator("LRN")
def lrn(g, name):
    g.add(name, [image(g, 2)], exact=False, size=g.random.choice([1, 3, 5]), alpha=g.random.choice([None, 0.1]), bias=g.random.choice([None, 2.0]))


@operator("LpNormalization")
def lp_norm(g, name):
    x = g.pick(ranks=range(1, 5), good=lambda v: v.array.size > 0 and np.abs(v.array).min() > 0.01)
    g.add(name, [x], exact=False, axis=g.axis(x.rank), p=g.random.choice([1, 2]))


@operator("MeanVarianceNormalization")
def mvn(g, name):
    g.add(name, [image(g, 2)], exact=False, axes=g.random.choice([None, [0, 2, 3], [2, 3], [1, 2, 3]]))


@operator("Softmax", "LogSoftmax")
def softmax(g, name):
    x = g.pick(ranks=range(1, 5))
    g.add(name, [x], exact=False, axis=g.axis(x.rank) if g.chance(0.8) else None)


@operator("Hardmax")
def hardmax(g, name):
    x = g.pick(ranks=range(1, 4), exact=True)
    g.add(name, [x], exact=True, axis=g.axis(x.rank) if g.chance(0.8) else None)


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
          "ReduceLogSum")
def reduce(g, name):
    kinds = [FLOAT, FLOAT, INT32] if name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd") else [FLOAT]
    x = g.pick(kinds, ranks=range(0 if g.opset >= 18 else 1, 6), good=within(-15, 15))
    if name == "ReduceLogSum":
        x = g.add("Add", [g.add("Abs", [x]), g.const(0.25, FLOAT)], exact=False)
    axes = g.random.sample(range(x.rank), g.random.randint(1, x.rank)) if x.rank and g.chance(0.8) else None
    axes = [a - x.rank if g.chance(0.3) else a for a in axes] if axes else None
    attributes, inputs = {"keepdims": g.random.choice([None, 0, 1])}, [x]
    if g.opset >= (13 if name == "ReduceSum" else 18):
        if axes:
            inputs.append(g.const(axes))
        elif g.chance(0.3):
            attributes["noop_with_empty_axes"] = 1
    else:
        attributes["axes"] = axes
    g.add(name, inputs, exact=None if name in ("ReduceMax", "ReduceMin") or x.dtype != FLOAT else False, **attributes)


@operator("ArgMax", "ArgMin")
def argmax(g, name):
    x = g.pick([FLOAT, FLOAT, INT32], ranks=range(1, 5), exact=True)
    g.add(name, [x], axis=g.axis(x.rank), keepdims=g.random.choice([None, 0, 1]),
          select_last_index=g.random.choice([None, 0, 1]) if g.opset >= 12 else None)


@operator("TopK")
def topk(g, name):
    x = g.pick(ranks=range(1, 5), exact=True, good=lambda v: v.array.size and all(len(set(row)) == len(row) for row in v.array.reshape(-1, v.shape[-1])))
    g.add(name, [x, g.const([g.random.randint(1, x.shape[-1])])], 2, axis=-1, largest=g.random.choice([None, 0, 1]))


@operator("CumSum")
def cumsum(g, name):
    x = g.pick([FLOAT, FLOAT, INT64, INT32], ranks=range(1, 5))
    g.add(name, [x, g.const(g.axis(x.rank), g.random.choice([INT64, INT32]))], exact=x.dtype != FLOAT, exclusive=g.random.choice([None, 1]), reverse=g.random.choice([None, 1]))


ANY = (FLOAT, FLOAT, FLOAT, INT64, INT32, BOOL)


@operator("Reshape")
def reshape(g, name):
    x = g.pick(ANY)
    count, shape = int(np.prod(x.shape)), []
    while count > 1 and len(shape) < 4:
        part = g.random.choice([d for d in range(1, count + 1) if count % d == 0])
        shape.append(part)
        count //= part
    shape.append(count)
    g.random.shuffle(shape)
    if g.chance(0.4):
        shape[g.random.randrange(len(shape))] = -1
    if x.rank and g.chance(0.3) and len(shape) and shape[0] == x.shape[0]:
        shape[0] = 0
    g.add(name, [x, g.const(shape)])


@operator("Flatten")
def flatten(g, name):
    x = g.pick(ANY, ranks=range(1, 6))
    g.add(name, [x], axis=g.random.choice([None] + list(range(-x.rank, x.rank + 1))))


@operator("Transpose")
def transpose(g, name):
    x = g.pick(ANY)
    g.add(name, [x], perm=g.random.sample(range(x.rank), x.rank) if x.rank and g.chance(0.8) else None)


@operator("Squeeze", "Unsqueeze")
def squeeze(g, name):
    x = g.pick(ANY, ranks=range(0 if name == "Unsqueeze" else 1, 5))
    if name == "Squeeze":
        ones = [d for d, e in enumerate(x.shape) if e == 1]
        axes = g.random.sample(ones, g.random.randint(1, len(ones))) if ones else None
        rank = x.rank
    else:
        count = g.random.randint(1, 2)
        rank = x.rank + count
        axes = g.random.sample(range(rank), count)
    axes = [a - rank if g.chance(0.3) else a for a in axes] if axes else None
    if g.opset >= 13:
        g.add(name, [x] + ([g.const(axes)] if axes else []))
    else:
        g.add(name, [x], axes=axes)


@operator("Concat")
def concat(g, name):
    x = g.pick(ANY, ranks=range(1, 5))
    axis = g.axis(x.rank)
    others = []
    for _ in range(g.random.randint(0, 3)):
        shape = list(x.shape)
        shape[axis] = g.random.randint(1, 4)
        others.append(g.pick([x.dtype], shape=shape) if g.chance(0.5) else g.fresh(x.dtype, shape))
    inputs = [x] + others
    g.random.shuffle(inputs)
    g.add(name, inputs, axis=axis)


@operator("Split")
def split(g, name):
    x = g.pick(ANY, ranks=range(1, 5), good=lambda v: max(v.shape) > 1)
    axis = max(range(x.rank), key=lambda d: x.shape[d])
    extent = x.shape[axis]
    cut = g.random.randint(1, extent - 1)
    parts = [cut, extent - cut]
    if g.opset >= 13:
        if g.opset >= 18 and g.chance(0.4):
            count = g.random.randint(2, extent)
            g.add(name, [x], -(-extent // -(-extent // count)), axis=axis, num_outputs=-(-extent // -(-extent // count)))
        else:
            g.add(name, [x, g.const(parts)], 2, axis=axis)
    else:
        g.add(name, [x], 2, axis=axis, split=parts)


@operator("Slice")
def cut(g, name):
    x = g.pick(ANY, ranks=range(1, 5))
    axes = g.random.sample(range(x.rank), g.random.randint(1, x.rank))
    starts, ends, steps = [], [], []
    for axis in axes:
        step = g.random.choice([1, 1, 2, -1, -2, 3])
        a, b = sorted([g.random.randint(0, x.shape[axis]), g.random.randint(0, x.shape[axis])])
        if step < 0:
            a, b = b, (a - 1 if a > 0 else -2**40)
        elif g.chance(0.3):
            b = 2**62
        if g.chance(0.3) and 0 <= a < x.shape[axis]:
            a -= x.shape[axis]
        starts.append(a), ends.append(b), steps.append(step)
    inputs = [x, g.const(starts), g.const(ends)]
    if axes != list(range(len(axes))) or any(s != 1 for s in steps) or g.chance(0.5):
        inputs += [g.const(axes), g.const(steps)]
    g.add(name, inputs)


def indices(g, shape, extent, dtype=INT64, constant=None):
    array = np.asarray(g.numpy.integers(-extent, extent, shape), dtype)
    return g.keep(Value(g.name(), array, True, g.chance(0.5) if constant is None else constant))


@operator("Gather")
def gather(g, name):
    x = g.pick(ANY, ranks=range(1, 5))
    axis = g.axis(x.rank)
    g.add(name, [x, indices(g, g.shape(g.random.randint(0, 2)), x.shape[axis], g.random.choice([INT64, INT32]))], axis=axis)


@operator("GatherElements")
def gather_elements(g, name):
    x = g.pick(ANY, ranks=range(1, 5))
    axis = g.axis(x.rank)
    shape = [g.random.randint(1, e) for e in x.shape]
    shape[axis] = g.random.randint(1, 6)
    g.add(name, [x, indices(g, shape, x.shape[axis])], axis=axis)


@operator("GatherND")
def gather_nd(g, name):
    x = g.pick(ANY, ranks=range(1, 5))
    depth = g.random.randint(1, x.rank)
    count = g.random.randint(1, 4)
    array = np.stack([g.numpy.integers(-e, e, count) for e in x.shape[:depth]], 1)
    g.add(name, [x, g.keep(Value(g.name(), array.astype(INT64), True, g.chance(0.5)))])


@operator("ScatterElements")
def scatter_elements(g, name):
    x = g.pick(ranks=range(1, 4))
    axis = g.axis(x.rank)
    shape = [g.random.randint(1, e) for e in x.shape]
    add = g.opset >= 16 and g.chance(0.5)
    places = np.stack([g.numpy.permutation(x.shape[axis])[: shape[axis]] for _ in range(int(np.prod(shape)) // shape[axis])])
    moved = places.reshape([e for d, e in enumerate(shape) if d != axis % x.rank] + [shape[axis]])
    places = np.moveaxis(moved, -1, axis % x.rank)
    updates = g.fresh(FLOAT, shape)
    g.add(name, [x, g.keep(Value(g.name(), np.ascontiguousarray(places, INT64), True, g.chance(0.5))), updates], exact=None if not add else False, axis=axis,
          reduction=g.random.choice(["add", "mul"] + (["max", "min"] if g.opset >= 18 else [])) if add else None)


@operator("ScatterND")
def scatter_nd(g, name):
    x = g.pick(ranks=range(1, 4))
    count = g.random.randint(1, x.shape[0])
    places = g.numpy.permutation(x.shape[0])[:count].reshape(count, 1)
    g.add(name, [x, g.keep(Value(g.name(), places.astype(INT64), True, g.chance(0.5))), g.fresh(FLOAT, (count,) + x.shape[1:])])


@operator("Expand")
def expand(g, name):
    x = g.pick(ANY)
    shape = [g.random.randint(1, 4) if e == 1 else g.random.choice([e, 1]) for e in x.shape]
    g.add(name, [x, g.const([g.random.randint(1, 3) for _ in range(g.random.randint(0, 1))] + shape)])


@operator("Tile")
def tile(g, name):
    x = g.pick(ANY, ranks=range(1, 5))
    g.add(name, [x, g.const([g.random.randint(1, 3) for _ in x.shape])])


@operator("Pad")
def pad(g, name):
    x = g.pick([FLOAT, FLOAT, INT64] if g.opset >= 13 else [FLOAT], ranks=range(1, 5))
    mode = g.random.choice(["constant", "constant", "edge", "reflect"] + (["wrap"] if g.opset >= 19 else []))
    least = -1 if mode == "constant" and g.chance(0.3) else 0
    pads = [g.random.randint(least, min(2, e - 1) if mode != "constant" else 2) for e in x.shape * 2]
    inputs = [x, g.const(pads)]
    if mode == "constant" and g.chance(0.5):
        inputs.append(g.const(2, x.dtype))
    g.add(name, inputs, mode=mode if mode != "constant" or g.chance(0.5) else None)


@operator("Resize")
def resize(g, name):
    x = image(g, 2, 2)
    mode = g.random.choice(["nearest", "linear", "cubic"])
    attributes = {"mode": mode, "coordinate_transformation_mode": g.random.choice([None, "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel"])}
    if mode == "nearest":
        attributes["nearest_mode"] = g.random.choice([None, "floor", "ceil", "round_prefer_ceil"])
    if mode == "cubic" and g.chance(0.4):
        attributes["cubic_coeff_a"] = -0.5
    if g.opset >= 18 and mode != "nearest" and g.chance(0.3):
        attributes["antialias"] = 1
    roi = None if g.opset >= 13 else g.const([], FLOAT)
    if g.chance(0.5):
        # Of extents that are not whole the specification and onnxruntime align other corners.
        choices = [[s for s in (0.5, 1.0, 1.5, 2.0, 3.0) if e * s % 1 == 0] for e in x.shape[2:]]
        scales = [1.0, 1.0] + [g.random.choice(each) for each in choices]
        g.add(name, [x, roi, g.const(scales, FLOAT)], exact=False, **attributes)
    else:
        sizes = list(x.shape[:2]) + [g.random.randint(2, 12) for _ in range(2)]
        g.add(name, [x, roi, None if g.opset >= 13 else g.const([], FLOAT), g.const(sizes)], exact=False, **attributes)


@operator("DepthToSpace", "SpaceToDepth")
def depth(g, name):
    x = g.fresh(FLOAT, [g.random.randint(1, 2), 4 * g.random.randint(1, 2), 2 * g.random.randint(1, 3), 2 * g.random.randint(1, 3)], False)
    g.add(name, [x], blocksize=2, mode=g.random.choice([None, "DCR", "CRD"]) if name == "DepthToSpace" else None)


@operator("Shape")
def shape(g, name):
    x = g.pick(ANY, ranks=range(1, 5))
    attributes = {"start": g.random.choice([None, 0, 1, -1]), "end": g.random.choice([None, -1, 2])} if g.opset >= 15 else {}
    s = g.add(name, [x], exact=True, **attributes)
    if g.chance(0.4) and len(s.array) and np.prod(s.array) < 500:
        g.add("ConstantOfShape", [s], exact=True, value=helper.make_tensor("value", TensorProto.FLOAT, [1], [1.5]) if g.chance(0.6) else None)


@operator("Size")
def size(g, name):
    g.add(name, [g.pick(ANY)], exact=True)


@operator("Range")
def counting(g, name):
    dtype = g.random.choice([INT64, INT32, FLOAT])
    g.add(name, [g.const(each, dtype) for each in (g.random.randint(-3, 3), g.random.randint(4, 12), g.random.randint(1, 3))])


@operator("OneHot")
def one_hot(g, name):
    places = indices(g, g.shape(g.random.randint(1, 3)), 5, g.random.choice([INT64, INT32]), False)
    g.add(name, [places, g.const(5), g.const([-1, 3], g.random.choice([FLOAT, INT64]))], axis=g.random.choice([None, 0, 1, -1]))


@operator("Trilu", since=14)
def trilu(g, name):
    g.add(name, [g.pick([FLOAT, INT64], ranks=range(2, 5))] + ([g.const(g.random.randint(-2, 2))] if g.chance(0.6) else []), upper=g.random.choice([None, 0, 1]))


@operator("EyeLike")
def eye(g, name):
    g.add(name, [g.pick([FLOAT, INT32], ranks=[2])], exact=True, k=g.random.choice([None, 1, -1]))


@operator("NonZero")
def nonzero(g, name):
    g.add(name, [g.pick([BOOL, INT32], ranks=range(1, 4))])


@operator("Compress")
def compress(g, name):
    x = g.pick(ranks=range(1, 4))
    axis = g.axis(x.rank)
    condition = np.asarray([g.chance(0.6) for _ in range(x.shape[axis])])
    g.add(name, [x, g.keep(Value(g.name(), condition, True, g.chance(0.5)))], axis=axis)


@operator("ReverseSequence")
def reverse_sequence(g, name):
    x = g.pick(ranks=range(2, 4))
    lengths = g.numpy.integers(1, x.shape[0] + 1, x.shape[1])
    g.add(name, [x, g.const(lengths)], batch_axis=1, time_axis=0)


@operator("RNN", "GRU", "LSTM")
def recurrent(g, name):
    small_enough = within(-5, 5)
    # Over no steps or samples onnxruntime 1.32 looks for the largest of no lengths in the others, and mostly ends this process.
    x = g.pick(ranks=[3], good=lambda value: small_enough(value) and (name == "RNN" or 0 not in value.shape[:2]))
    gates, hidden = {"RNN": 1, "GRU": 3, "LSTM": 4}[name], g.random.randint(1, 4)
    direction = g.random.choice([None, "forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    small = {"low": -0.7, "high": 0.7}
    inputs = [x, g.fresh(FLOAT, [ways, gates * hidden, x.shape[2]], **small), g.fresh(FLOAT, [ways, gates * hidden, hidden], **small)]
    inputs.append(g.fresh(FLOAT, [ways, 2 * gates * hidden], **small) if g.chance(0.6) else None)
    inputs.append(g.const(g.numpy.integers(1, x.shape[0] + 1, x.shape[1]), INT32) if g.chance(0.3) else None)
    inputs.append(g.fresh(FLOAT, [ways, x.shape[1], hidden], **small) if g.chance(0.4) else None)
    if name == "LSTM" and g.chance(0.4):
        inputs.append(g.fresh(FLOAT, [ways, x.shape[1], hidden], **small))
    attributes = {"linear_before_reset": g.random.choice([None, 1])} if name == "GRU" else {}
    g.add(name, inputs, 3 if name == "LSTM" else 2, exact=False, hidden_size=hidden, direction=direction, **attributes)


@operator("QuantizeLinear")
def quantize(g, name):
    x = g.pick(ranks=range(1, 5), exact=True)
    dtype = g.random.choice([np.uint8, np.int8])
    y = g.add(name, [x, g.const(0.0371, FLOAT), g.const(3, dtype)])
    if g.chance(0.7):
        g.add("DequantizeLinear", [y, g.const(0.05, FLOAT), g.const(2, dtype)], exact=False)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(g, name):
    g.add(name, [g.fresh(FLOAT, None, False)], 3, exact=False)


@operator("MatMulInteger")
def matmul_integer(g, name):
    a = g.fresh(g.random.choice([np.uint8, np.int8]), g.shape(2), False)
    b = g.fresh(np.uint8, [a.shape[1], g.random.randint(1, 5)])
    g.add(name, [a, b] + ([g.const(2, a.dtype), g.const(1, np.uint8)] if g.chance(0.5) else []))


@operator("GridSample", since=16)
def grid_sample(g, name):
    x = image(g, 2, 2)
    grid = g.fresh(FLOAT, [x.shape[0], g.random.randint(1, 5), g.random.randint(1, 5), 2], low=-1.3, high=1.3)
    modes = ["bilinear", "nearest", "bicubic"] if g.opset < 20 else ["linear", "nearest", "cubic"]
    g.add(name, [x, grid], exact=False, mode=g.random.choice(modes[:1] + modes[2:]), padding_mode=g.random.choice([None, "zeros", "border", "reflection"]),
          align_corners=g.random.choice([None, 0, 1]))


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", since=12)
def loss(g, name):
    x = g.pick(ranks=[2, 3, 4], good=within(-20, 20))
    target = np.asarray(g.numpy.integers(0, x.shape[1], (x.shape[0],) + x.shape[2:]), INT64)
    inputs = [x, g.keep(Value(g.name(), target, True))] + ([g.fresh(FLOAT, [x.shape[1]], low=0.2)] if g.chance(0.4) else [])
    g.add(name, inputs, exact=False, reduction=g.random.choice([None, "mean", "sum", "none"]))


def branch(g, operators, x, result):
    """A graph of unary operators over a value of the graph around it."""
    nodes, last = [], x
    for k, each in enumerate(operators):
        out = f"{result}_{k}" if k + 1 < len(operators) else result
        nodes.append(helper.make_node(each, [last], [out]))
        last = out
    return nodes


@operator("If")
def condition(g, name):
    x = g.pick(good=within(-15, 15))
    kinds = ["Neg", "Abs", "Relu", "Tanh", "Sin", "Identity"]
    bodies = {}
    for key in ("then_branch", "else_branch"):
        result = f"{key}{len(g.nodes)}"
        nodes = branch(g, [g.random.choice(kinds) for _ in range(g.random.randint(1, 3))], x.name, result)
        bodies[key] = helper.make_graph(nodes, key, [], [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)])
    chosen = g.keep(Value(g.name(), np.asarray(g.chance(0.5)), True, g.chance(0.5)))
    add_with_graphs(g, name, [chosen], [x], 1, **bodies)


@operator("Loop")
def loop(g, name):
    x = g.pick(good=lambda v: within(-5, 5)(v) and v.array.size < 300)
    n = len(g.nodes)
    dtypes = {"i": TensorProto.INT64, "go": TensorProto.BOOL, "v": TensorProto.FLOAT, "more": TensorProto.BOOL, "next": TensorProto.FLOAT, "scan": TensorProto.FLOAT}
    info = lambda name: helper.make_tensor_value_info(f"{name}{n}", dtypes[name], [] if name in ("i", "go", "more") else None)
    nodes = [helper.make_node("Identity", [f"go{n}"], [f"more{n}"]), helper.make_node(g.random.choice(["Tanh", "Sin", "Neg"]), [f"v{n}"], [f"next{n}"]),
             helper.make_node(g.random.choice(["Add", "Mul", "Sub"]), [f"next{n}", x.name], [f"scan{n}"])]
    body = helper.make_graph(nodes, "body", [info("i"), info("go"), info("v")], [info("more"), info("next"), info("scan")])
    add_with_graphs(g, name, [g.const(g.random.randint(1, 4)), None, x], [x], 2, body=body)


def add_with_graphs(g, name, inputs, captured, outputs, **bodies):
    """Names that graphs read are no inputs of the node: while it is computed alone, an Identity keeps them."""
    names = [f"v{len(g.values) + k}" for k in range(outputs)]
    node = helper.make_node(name, [v.name if v else "" for v in inputs], names, f"n{len(g.nodes)}", **bodies)
    keeps = [helper.make_node("Identity", [v.name], [f"kept_{v.name}"]) for v in captured]
    results = compute([node] + keeps, g.values, names, g.opset)
    if any(r.size > MOST_ELEMENTS or not np.isfinite(r).all() or np.abs(r).max(initial=0) > LARGEST for r in results):
        raise Refused("not finite")
    g.nodes.append(node)
    node.doc_string = " ".join(v.name for v in captured)
    for label, result in zip(names, results):
        g.keep(Value(label, np.asarray(result), False))
        g.made[label] = node

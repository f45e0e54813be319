"""A random ONNX graph that grows node by node, as tools/dev/onnx_fuzz.py makes it. onnxruntime computes each node at once."""

import random

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

FLOAT, INT64, INT32, BOOL = np.float32, np.int64, np.int32, np.bool_
MOST_ELEMENTS, LARGEST = 3000, 60.0


class Value:
    def __init__(self, name, array, exact, constant=False):
        self.name, self.array, self.exact, self.constant = name, array, exact, constant

    dtype = property(lambda self: self.array.dtype.type)
    shape = property(lambda self: self.array.shape)
    rank = property(lambda self: self.array.ndim)


class Refused(Exception):
    """onnxruntime does not take a node, or its result is of no use."""


def compute(nodes, values, outputs, opset):
    """What onnxruntime gives for these nodes."""
    used = {name for node in nodes for name in node.input} | set(outputs)
    given = [value for value in values if value.name in used]
    model = make_model(nodes, [v for v in given if not v.constant], [v for v in given if v.constant], outputs, opset)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {v.name: v.array for v in given if not v.constant})
    except Exception as error:
        raise Refused(str(error)) from error


def make_model(nodes, inputs, constants, outputs, opset):
    def info(value):
        return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.array.dtype), value.shape)

    outputs = [info(each) if isinstance(each, Value) else helper.make_empty_tensor_value_info(each) for each in outputs]
    tensors = [numpy_helper.from_array(value.array, value.name) for value in constants]
    graph = helper.make_graph(nodes, "random", [info(value) for value in inputs], outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


class Graph:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        self.opset = self.random.randint(11, 21)
        self.nodes, self.values, self.made = [], [], {}  # made: name of a value to its node

    # Values.
    def chance(self, probability):
        return self.random.random() < probability

    def name(self):
        return f"v{len(self.values)}"

    def shape(self, rank=None):
        rank = self.random.choice([0, 1, 1, 2, 2, 3, 3, 4, 4, 5]) if rank is None else rank
        return tuple(self.random.choice([1, 1, 2, 3, 4, 5, 7, 8]) for _ in range(rank))

    def fresh(self, dtype=FLOAT, shape=None, constant=None, low=-3.0, high=3.0):
        """A new input or initializer."""
        shape = self.shape() if shape is None else tuple(shape)
        if dtype in (FLOAT, np.float64, np.float16):
            array = np.round(self.numpy.uniform(low, high, shape) * 64) / 64 + 1 / 256
        elif dtype == BOOL:
            array = self.numpy.integers(0, 2, shape)
        else:
            least = 0 if np.issubdtype(dtype, np.unsignedinteger) else max(-9, int(low * 3))
            array = self.numpy.integers(least, max(least + 1, int(high * 3)), shape)
        constant = self.chance(0.4) if constant is None else constant
        return self.keep(Value(self.name(), np.asarray(array, dtype), True, constant))

    def keep(self, value):
        self.values.append(value)
        return value

    def const(self, array, dtype=INT64):
        return self.keep(Value(self.name(), np.asarray(array, dtype), True, True))

    def pick(self, dtypes=(FLOAT,), ranks=range(0, 6), exact=False, good=lambda value: True, shape=None):
        """One of the values, rather a late one, or a new one."""
        found = [v for v in self.values if v.dtype in dtypes and v.rank in ranks and (v.exact or not exact) and not v.constant and good(v)
                 and (shape is None or v.shape == tuple(shape))]
        if found and self.chance(0.85):
            return found[-1] if self.chance(0.5) else self.random.choice(found)
        for _ in range(20):
            value = self.fresh(self.random.choice(list(dtypes)), self.shape(self.random.choice(list(ranks))) if shape is None else shape, False)
            if good(value):
                return value
            self.values.pop()
        raise Refused("no such value")

    def partner(self, value, exact=False):
        """Of the same type, which broadcasts with it."""
        found = [v for v in self.values if v.dtype == value.dtype and (v.exact or not exact) and broadcasts(v.shape, value.shape)]
        if found and self.chance(0.5):
            return self.random.choice(found)
        shape = [1 if self.chance(0.25) else extent for extent in value.shape]
        shape = shape[self.random.randint(0, len(shape)):] if self.chance(0.3) else shape
        return self.fresh(value.dtype, shape)

    def axis(self, rank):
        axis = self.random.randrange(rank)
        return axis - rank if self.chance(0.4) else axis

    def add(self, operator, inputs, outputs=1, exact=None, **attributes):
        """Adds a node, computed at once. exact: as its inputs where it is None."""
        names = [f"v{len(self.values) + k}" for k in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(operator, [value.name if value else "" for value in inputs], names, f"n{len(self.nodes)}", **attributes)
        results = compute([node], self.values, names, self.opset)
        whole = not any(np.issubdtype(r.dtype, np.floating) for r in results)
        for result in results:
            if result.size > MOST_ELEMENTS or result.size == 0 and self.chance(0.8):
                raise Refused("too large or empty")
            if np.issubdtype(result.dtype, np.floating) and not (np.isfinite(result).all() and (np.abs(result) < LARGEST).all()):
                raise Refused("not finite")
            if np.issubdtype(result.dtype, np.integer) and result.size and np.abs(result.astype(np.float64)).max() > 2**30:
                raise Refused("too large")
        given = all(value.exact for value in inputs if value)
        exact = given if exact is None else exact or (whole and given)
        self.nodes.append(node)
        made = [self.keep(Value(name, np.asarray(result), exact)) for name, result in zip(names, results)]
        for value in made:
            self.made[value.name] = node
        return made[0]


def broadcasts(a, b):
    try:
        return np.prod(np.broadcast_shapes(a, b)) <= MOST_ELEMENTS
    except ValueError:
        return False

"""The work of clnet-bench's items in PyTorch: what is computed, for all peers and layouts alike."""
import dataclasses
import typing

import torch
from torch import nn
from torch.nn import functional

from peers import networks
from peers.functions import FUNCTIONS
from peers.timing import random_inputs


@dataclasses.dataclass
class Forward:
    """module(*inputs), without gradients."""
    module: nn.Module
    inputs: list
    from_host: bool = False  # inputs begin and results end in the host's memory, in the plain layout
    layouts: bool = False  # whether channels_last is worth trying


@dataclasses.dataclass
class Step:
    """Work that is more than a forward pass: prepare(compiled, layout) makes a function that does it once."""
    prepare: typing.Callable
    layouts: bool = False


class Function(nn.Module):
    """function(*inputs, weight)"""

    def __init__(self, function, weight=None):
        super().__init__()
        self.function, self.weight = function, None if weight is None else nn.Parameter(weight)

    def forward(self, *inputs):
        return self.function(*inputs) if self.weight is None else self.function(*inputs, self.weight)


def tensors(*shapes):
    return [torch.from_numpy(values) for values in random_inputs(shapes)]


def work_of(item, peer):
    torch.manual_seed(1)
    return loop() if peer == "loop" else MAKERS[item.kind](item, **item.fields)


def matmul(item, m, n, k, batch):
    n, k, batches = n or m, k or m, [batch] if batch else []
    return Forward(Function(torch.matmul), tensors((*batches, m, k), (*batches, k, n)))


def linear(item, inputs, outputs, batch, what):
    x, weight, gradient = tensors((batch, inputs), (outputs, inputs), (batch, outputs))
    if what == "forward":
        return Forward(Function(functional.linear, weight), [x])
    if what == "backward-data":
        return Forward(Function(torch.matmul), [gradient, weight])
    return Forward(Function(lambda g, x: torch.matmul(g.t(), x)), [gradient, x])


def convolution(item, inputs, size, batch, what, stride, kernel=None, outputs=None):
    kernel, stride, outputs, groups = kernel or 3, stride or 1, outputs or inputs, 1 if outputs else inputs
    x, w = tensors((batch, inputs, size, size), (outputs, inputs // groups, kernel, kernel))
    module = Function(lambda x, w: functional.conv2d(x, w, None, stride, kernel // 2, 1, groups), w)
    if what == "forward":
        return Forward(module, [x], layouts=True)
    mask = [what == "backward-data", what == "backward-weights", False]

    def backward(g, x, w):
        return torch.ops.aten.convolution_backward(g, x, w, None, [stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], groups, mask)
    with torch.no_grad():
        g = module(x)
    return Forward(Function(backward), [g, x, w], layouts=True)


def axes_convolution(item, type, axes, inputs, outputs, size, kernel, stride, batch, what):
    transposed = type == "transposed"
    x, w = tensors((batch, inputs, *[size] * axes), (*((inputs, outputs) if transposed else (outputs, inputs)), *[kernel] * axes))
    function = getattr(functional, f"conv{'_transpose' if transposed else ''}{axes}d")
    module = Function(lambda x, w: function(x, w, stride=stride, padding=kernel // 2), w)
    if what == "forward":
        return Forward(module, [x])

    def prepare(compiled, layout):
        total = compiled(Function(lambda x, w: function(x, w, stride=stride, padding=kernel // 2).sum(), w))

        def run():
            total.zero_grad()
            total(x.detach().requires_grad_()).backward()
        return run
    return Step(prepare)


def pool(item, type, kernel, stride, channels, size, batch, what):
    padding = (kernel - 1) // 2
    (x,) = tensors((batch, channels, size, size))
    function = functional.max_pool2d if type == "max" else functional.avg_pool2d
    if what == "forward":
        return Forward(Function(lambda x: function(x, kernel, stride, padding)), [x], layouts=True)
    # The forward result is kept, so that a run is the gradient alone.
    if type == "max":
        y, places = functional.max_pool2d(x, kernel, stride, padding, return_indices=True)
        backward = torch.ops.aten.max_pool2d_with_indices_backward
        return Forward(Function(lambda g, x, places: backward(g, x, [kernel] * 2, [stride] * 2, [padding] * 2, [1, 1], False, places)),
                       [torch.rand_like(y), x, places], layouts=True)
    backward = torch.ops.aten.avg_pool2d_backward
    return Forward(Function(lambda g, x: backward(g, x, [kernel] * 2, [stride] * 2, [padding] * 2, False, True, None)),
                   [torch.rand_like(function(x, kernel, stride, padding)), x], layouts=True)


def adaptive_pool(item, out, channels, size, batch, what):
    x, g = tensors((batch, channels, size, size), (batch, channels, out or 1, out or 1))
    if what == "forward":
        return Forward(Function(lambda x: functional.adaptive_avg_pool2d(x, out or 1)), [x], layouts=True)
    if out:
        return Forward(Function(lambda g, x: torch.ops.aten._adaptive_avg_pool2d_backward(g, x)), [g, x], layouts=True)
    # To one element PyTorch takes the mean, and this is its gradient.
    return Forward(Function(lambda g: g.expand(batch, channels, size, size) / size ** 2), [g], layouts=True)


def forward_and_gradients(module, x, layouts=False):
    """The result and the gradients of x and all parameters, from one that is given."""
    def prepare(compiled, layout):
        chain = compiled(module)
        inputs = (x.detach().contiguous(memory_format=layout) if layouts else x.detach()).requires_grad_()
        wanted = [inputs, *module.parameters()]
        with torch.no_grad():
            g = torch.rand_like(module(inputs))
        return lambda: torch.autograd.grad(chain(inputs), wanted, g)
    return Step(prepare, layouts)


def batch_norm(item, channels, size, batch, what):
    return forward_and_gradients(nn.BatchNorm2d(channels, track_running_stats=False), *tensors((batch, channels, size, size)), layouts=True)


def layer_norm(item, rows, width, what):
    module, inputs = nn.LayerNorm(width), tensors((rows, width))
    return Forward(module, inputs) if what == "forward" else forward_and_gradients(module, *inputs)


def elementwise(item, function):
    special = {"gelu": functional.gelu, "gelu-tanh": lambda x: functional.gelu(x, approximate="tanh"), "softplus": functional.softplus,
               "mish": functional.mish, "pow2": lambda x: x.pow(2), "pow2.5": lambda x: x.pow(2.5), "pow-x": lambda x: x.pow(x)}
    return Forward(Function(special.get(function) or getattr(torch, function)), tensors((1 << 20,)))


def function_of(item, function, what):
    """The result; for -train also the first input's gradient, from one that is given."""
    make, call = FUNCTIONS[function]
    inputs = make()
    if what == "forward":
        return Forward(Function(call), inputs)

    def prepare(compiled, layout):
        x = inputs[0].requires_grad_()
        g = torch.rand_like(call(*inputs))
        return lambda: torch.autograd.grad(call(*inputs), x, g)
    return Step(prepare)


def random(item, function):
    if function == "dropout":
        return Forward(Function(lambda x: functional.dropout(x, 0.5, True)), tensors((1 << 20,)))
    return Forward(Function(lambda: getattr(torch, function)(1 << 20)), [])


def memory(item, function, large, softmax):
    if function:
        return Forward(Function(lambda x: x.permute(5, 3, 1, 4, 2, 0).contiguous()), tensors((4, 8, 4, 16, 16, 32)))
    if softmax:
        return Forward(Function(lambda x: torch.softmax(x, 1)), tensors((4096, 1000)))
    functions = {"relu": torch.relu, "sum": torch.sum, "argmax": lambda x: torch.argmax(x, 0)}
    return Forward(Function(functions[large]), tensors((64 << 20,)))


# Indices are no inputs: onnxruntime's are all numbers of f32.
def gather(item, dim):
    indices = torch.randint(1024, (1024, 1024))
    return Forward(Function(lambda x: torch.gather(x, dim, indices)), tensors((1024, 1024)))


def embedding(item, rows, width, count, what):
    indices = torch.randint(rows, (count,))
    if what == "forward":
        return Forward(Function(lambda table: functional.embedding(indices, table)), tensors((rows, width)))
    return Forward(Function(lambda g: torch.ops.aten.embedding_dense_backward(g, indices, rows, -1, False)), tensors((count, width)))


def optimizer(item):
    """A step with a given gradient."""
    values, gradient = tensors((25 << 20,), (25 << 20,))

    def prepare(compiled, layout):
        parameter = nn.Parameter(values)
        parameter.grad = gradient
        return fused(torch.optim.Adam, [parameter], 1e-3).step
    return Step(prepare)


class WithLoss(nn.Module):
    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, x, targets):
        return self.loss(self.model(x), targets)


def fused(kind, parameters, *options, **named):
    """An optimizer whose step is one kernel, where this PyTorch has that for a CPU."""
    try:
        return kind(parameters, *options, fused=True, **named)
    except (TypeError, RuntimeError):
        return kind(parameters, *options, **named)


def training(model, x, targets, optimizer, loss=functional.cross_entropy, layouts=False):
    """A step from the host's memory to updated weights; optimizer(parameters) makes the optimizer."""
    def prepare(compiled, layout):
        chain = WithLoss(model.to(memory_format=layout), loss)
        compiled_chain, update = compiled(chain), optimizer(model.parameters())

        def run():
            value = compiled_chain(x.contiguous(memory_format=layout) if layouts else x, targets)
            update.zero_grad()
            value.backward()
            update.step()
        return run
    return Step(prepare, layouts)


def network(item, network, what, batch):
    make, shape, classes = networks.NETWORKS[network]
    (pixels,) = tensors((batch, *shape))
    if what == "train":
        optimizer = ((lambda parameters: fused(torch.optim.SGD, parameters, 1e-3, momentum=0.9)) if classes == 1000 else
                     (lambda parameters: fused(torch.optim.Adam, parameters, 1e-3)))
        return training(make(), pixels, torch.arange(batch) % classes, optimizer, layouts=True)
    return Forward(make().eval(), [pixels], from_host=what == "infer", layouts=True)


def vision_transformer(item, what, batch):
    return Forward(networks.VisionTransformer().eval(), tensors((batch, 3, 224, 224)), from_host=True)


def perceptron(item, what):
    return Forward(networks.perceptron().eval(), tensors((1, 784)), from_host=True)


def segmentation(item, what, batch):
    (x,), labels = tensors((batch, 3, 128, 128)), (torch.arange(batch * 128 * 128) // 7 % 2).view(batch, 128, 128)
    return training(networks.UNet(), x, labels, lambda parameters: fused(torch.optim.Adam, parameters, 1e-3), layouts=True)


def language(item, what, batch):
    x = torch.arange(batch * 64).pow(2).remainder(65).view(batch, 64)
    return training(networks.CharGpt(), x, (x + 1).remainder(65), lambda parameters: fused(torch.optim.AdamW, parameters, 1e-3),
                    loss=lambda y, targets: functional.cross_entropy(y.flatten(0, 1), targets.flatten()))


def generation(item):
    model = networks.CharGpt().eval()

    def prepare(compiled, layout):
        def run():
            caches = [(torch.empty(4, 64, 32), torch.empty(4, 64, 32)) for _ in range(4)]
            character = 0
            with torch.no_grad():
                for i in range(64):
                    character = int(model.step(torch.tensor([character]), torch.tensor([i]), caches).argmax())
        return run
    return Step(prepare)


def recurrent(item, type, hidden, what, batch, steps=64):
    model = (nn.LSTM if type == "lstm" else nn.GRU)(hidden, hidden, 2)
    (x,) = tensors((steps, batch, hidden))
    if what == "forward":
        return Forward(Outputs(model), [x])

    def prepare(compiled, layout):
        def run():
            model.zero_grad()
            model(x)[0].sum().backward()
        return run
    return Step(prepare)


class Outputs(nn.Module):
    """The outputs of a recurrent layer without its last states."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)[0]


def by_hand(item):
    """PyTorch's own LSTM, which is what its users would take."""
    return recurrent(item, "lstm", 128, "gradient", 32, steps=200)


def loop(steps=200, batch=32, hidden=128):
    """The recurrence by hand, from the operations that clnet-bench takes, and the gradients of all weights."""
    (x,) = tensors((steps, batch, hidden))
    weights = [(torch.rand(2 * hidden, 4 * hidden) * 0.1 - 0.05).requires_grad_() for _ in range(2)]
    biases = [torch.zeros(4 * hidden).requires_grad_() for _ in range(2)]

    def prepare(compiled, layout):
        def run():
            total, h, c = 0, [torch.zeros(batch, hidden)] * 2, [torch.zeros(batch, hidden)] * 2
            for y in x.unbind():
                for layer in range(2):
                    gates = torch.addmm(biases[layer], torch.cat((y, h[layer]), 1), weights[layer])
                    i, f, g, o = gates.chunk(4, 1)
                    c[layer] = torch.sigmoid(f) * c[layer] + torch.sigmoid(i) * torch.tanh(g)
                    y = h[layer] = torch.sigmoid(o) * torch.tanh(c[layer])
                total = total + y.sum()
            return torch.autograd.grad(total, weights + biases)
        return run
    return Step(prepare)


MAKERS = {"matmul": matmul, "linear": linear, "convolution": convolution, "depthwise": convolution, "axes": axes_convolution,
          "pool": pool, "adaptive-pool": adaptive_pool, "batch-norm": batch_norm, "layer-norm": layer_norm, "elementwise": elementwise,
          "function": function_of, "random": random, "memory": memory, "gather": gather, "embedding": embedding, "optimizer": optimizer,
          "network": network, "transformer": vision_transformer, "perceptron": perceptron, "segmentation": segmentation,
          "language": language, "generation": generation, "recurrent": recurrent, "by-hand": by_hand}

"""The work of clnet-bench's items in PyTorch: what is computed, for all peers and layouts alike."""
import dataclasses
import typing

import torch
from torch import nn
from torch.nn import functional

from peers import networks
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


def work_of(item):
    torch.manual_seed(1)
    return MAKERS[item.kind](item, **item.fields)


def matmul(item, m, n, k):
    n, k = n or m, k or m
    return Forward(Function(torch.matmul), tensors((m, k), (k, n)))


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
    stride, padding = stride or kernel, (kernel - 1) // 2
    (x,) = tensors((batch, channels, size, size))
    function = functional.max_pool2d if type == "max" else functional.avg_pool2d
    if what != "backward":
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


def elementwise(item, function):
    special = {"gelu": functional.gelu, "pow2": lambda x: x.pow(2), "pow2.5": lambda x: x.pow(2.5), "pow-x": lambda x: x.pow(x)}
    return Forward(Function(special.get(function) or getattr(torch, function)), tensors((1 << 20,)))


def memory(item, function, large, softmax):
    if function:
        return Forward(Function(lambda x: x.permute(5, 3, 1, 4, 2, 0).contiguous()), tensors((4, 8, 4, 16, 16, 32)))
    if softmax:
        return Forward(Function(lambda x: torch.softmax(x, 1)), tensors((4096, 1000)))
    return Forward(Function(torch.relu if large == "relu" else torch.sum), tensors((64 << 20,)))


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


MAKERS = {"matmul": matmul, "linear": linear, "convolution": convolution, "depthwise": convolution, "axes": axes_convolution, "pool": pool,
          "elementwise": elementwise, "memory": memory, "network": network, "transformer": vision_transformer, "perceptron": perceptron,
          "segmentation": segmentation, "language": language, "generation": generation, "recurrent": recurrent, "by-hand": by_hand}

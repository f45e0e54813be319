"""What the names of clnet-bench's items say, and which peers can do their work. Needs nothing but Python."""
import dataclasses
import re

# Of these compute what PyTorch exports.
EXPORTED = "onnxruntime", "openvino"
PEERS = "pytorch", "loop", "compiled", *EXPORTED

KINDS = {kind: re.compile(f"(?:{pattern})$") for kind, pattern in {
    "matmul": r"matmul-(?P<m>\d+)(x(?P<n>\d+)x(?P<k>\d+))?(-b(?P<batch>\d+))?",
    "linear": r"linear-(?P<inputs>\d+)-(?P<outputs>\d+)-b(?P<batch>\d+)-(?P<what>forward|backward-data|backward-weights)",
    "convolution": r"conv((?P<kernel>\d+)x(?P=kernel))?-(?P<inputs>\d+)-(?P<outputs>\d+)-(?P<size>\d+)(-s(?P<stride>\d+))?-b(?P<batch>\d+)"
                   r"-(?P<what>forward|backward-data|backward-weights)",
    "depthwise": r"depthwise-(?P<inputs>\d+)-(?P<size>\d+)(-s(?P<stride>\d+))?-b(?P<batch>\d+)"
                 r"-(?P<what>forward|backward-data|backward-weights)",
    "axes": r"(?P<type>conv|transposed)(?P<axes>\d)d-(?P<inputs>\d+)-(?P<outputs>\d+)-(?P<size>\d+)-k(?P<kernel>\d+)-s(?P<stride>\d+)"
            r"-b(?P<batch>\d+)-(?P<what>forward|train)",
    "pool": r"(?P<type>max|avg)pool(?P<kernel>\d)s(?P<stride>\d)-(?P<channels>\d+)-(?P<size>\d+)-b(?P<batch>\d+)"
            r"-(?P<what>forward|backward)",
    "adaptive-pool": r"(global-avgpool|adaptive-avgpool(?P<out>\d+))-(?P<channels>\d+)-(?P<size>\d+)-b(?P<batch>\d+)"
                     r"-(?P<what>forward|backward)",
    "batch-norm": r"batch-norm-(?P<channels>\d+)-(?P<size>\d+)-b(?P<batch>\d+)-(?P<what>train)",
    "layer-norm": r"layer-norm-(?P<rows>\d+)-(?P<width>\d+)-(?P<what>forward|train)",
    "elementwise": r"elementwise-(?P<function>exp|log|log1p|expm1|sin|cos|tanh|erf|rsqrt|gelu|gelu-tanh|softplus|mish|pow2|pow2\.5|pow-x)"
                   r"-1m",
    "function": r"function-(?P<function>[a-z0-9-]+)-(?P<what>forward|train)",
    "random": r"(?P<function>rand|randn|dropout)-1m",
    "memory": r"(?P<function>permute)-6d-1m|(?P<large>relu|sum|argmax)-64m|(?P<softmax>softmax)-4096-1000",
    "gather": r"gather-(?P<dim>[01])-1m",
    "embedding": r"embedding-(?P<rows>\d+)-(?P<width>\d+)-b(?P<count>\d+)-(?P<what>forward|backward)",
    "optimizer": r"adam-25m",
    "network": r"(?P<network>keras-cnn|cnn|lenet5|resnet18|resnet50|vgg16|mobilenetv2)-(?P<what>forward|infer|train)-b(?P<batch>\d+)"
               r"(-compiled)?",
    "transformer": r"vit-tiny-(?P<what>infer)-b(?P<batch>\d+)",
    "perceptron": r"mlp-(?P<what>infer)-b1(-compiled)?",
    "segmentation": r"unet-128-(?P<what>train)-b(?P<batch>\d+)",
    "language": r"char-gpt-(?P<what>train)-b(?P<batch>\d+)",
    "generation": r"char-gpt-generate-b1",
    "recurrent": r"(?P<type>lstm|gru)-(?P<hidden>\d+)-(?P<what>forward|gradient)-b(?P<batch>\d+)",
    "by-hand": r"lstm-by-hand-128-t200-b32(-compiled)?",
}.items()}


@dataclasses.dataclass(frozen=True)
class Item:
    name: str
    kind: str
    fields: dict  # what the name says: numbers as int, what it leaves out as None

    @property
    def what(self):
        return self.fields.get("what")


def parse(name):
    """The item of a name; None where no peer knows it."""
    for kind, pattern in KINDS.items():
        if found := pattern.match(name):
            return Item(name, kind, {key: int(value) if value and value.isdigit() else value for key, value in found.groupdict().items()})
    return None


def can_run(peer, item):
    """Whether a peer does such work at all: what computes exported modules only computes forward, with random numbers of its own (values
    are compared), and torch.compile leaves recurrences to PyTorch, as the steps of training do optimizers. The loop in PyTorch is there for the
    recurrence by hand, which PyTorch's users would leave to its own layer."""
    if peer == "loop":
        return item.kind == "by-hand"
    if peer == "compiled":
        return item.kind not in ("recurrent", "by-hand", "generation", "optimizer", "function")
    if peer in EXPORTED:
        return item.kind not in ("by-hand", "generation", "random", "optimizer", "function") and item.what in (None, "forward", "infer")
    return True

"""PyTorch's own runs of an item, as it is and through torch.compile, in every setting worth trying."""
import torch

from peers.work import Forward, work_of

LAYOUTS = torch.contiguous_format, torch.channels_last


def as_it_is(module):
    return module


def with_inductor(module):
    # Of whole functions: what it leaves to PyTorch is no result of torch.compile.
    return torch.compile(module, fullgraph=True)


def with_packed_weights(module):
    return torch.compile(module, fullgraph=True, options={"freezing": True})


def runs(item, peer):
    """Functions that do the item's work once; each is to be measured before the next is asked for."""
    work = work_of(item, peer)
    layouts = LAYOUTS if work.layouts else LAYOUTS[:1]
    if peer != "compiled":
        for layout in layouts:
            yield prepared(work, as_it_is, layout)
        if item.kind == "network" and item.what != "train":
            yield from packed_inference(work)
        return
    settings = [(with_inductor, layout) for layout in layouts]
    if isinstance(work, Forward) and list(work.module.parameters()):
        settings.append((with_packed_weights, LAYOUTS[0]))
    for compiled, layout in settings:
        yield prepared(work, compiled, layout)
        # What was compiled would count against the limit on recompiling the same code.
        torch.compiler.reset()


def prepared(work, compiled, layout):
    return inference(work, compiled, layout) if isinstance(work, Forward) else work.prepare(compiled, layout)


def to_layout(tensor, layout):
    return tensor.contiguous(memory_format=layout) if tensor.dim() == 4 else tensor


def inference(work, compiled, layout):
    module = compiled(work.module.to(memory_format=layout))
    inputs = work.inputs if work.from_host else [to_layout(tensor, layout) for tensor in work.inputs]

    def run():
        with torch.inference_mode():
            if work.from_host:
                return module(*(to_layout(tensor, layout) for tensor in inputs)).numpy()
            return module(*inputs)
    return run


def packed_inference(work):
    """Inference in oneDNN's layout with weights packed before; nothing where this PyTorch cannot run the model so."""
    def run():
        with torch.no_grad():
            return packed(work.inputs[0].to_mkldnn()).to_dense().numpy()
    try:
        from torch.utils.mkldnn import to_mkldnn
        packed = to_mkldnn(work.module.to(memory_format=torch.contiguous_format))
        run()
    except (ImportError, RuntimeError, NotImplementedError):
        return
    yield run


def start(peer):
    """Its version; raises where it cannot run."""
    if peer == "compiled":
        if not hasattr(torch, "compile"):
            raise RuntimeError(f"PyTorch {torch.__version__} has no torch.compile")
        # Fails at once where there is no C++ compiler.
        torch.compile(torch.exp, fullgraph=True)(torch.rand(64))
    return torch.__version__

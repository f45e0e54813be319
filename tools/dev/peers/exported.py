"""What computes exported modules: onnxruntime and OpenVINO. PyTorch's module is exported once, with the result that it computes, and then
measured in processes without PyTorch, in each of which the peer's own result is compared first."""
import importlib
import os

import numpy

from peers.timing import random_inputs

# Each module has start(), its version, and load(path, threads): the shapes of the inputs, and a function from their arrays to the result.
MODULES = {"onnxruntime": "peers.onnxruntime_runs", "openvino": "peers.openvino_runs"}


def path_of(folder, name):
    return os.path.join(folder, name + ".onnx")


def wanted_of(folder, name):
    return os.path.join(folder, name + ".npy")


def export(item, folder):
    """Writes the item's model, and PyTorch's result."""
    import torch
    from peers.work import work_of
    work, path = work_of(item, "exported"), path_of(folder, item.name)
    # The fused kernel of whole layers of transformers has no ONNX.
    if hasattr(torch.backends, "mha"):
        torch.backends.mha.set_fastpath_enabled(False)
    work.module.eval()
    with torch.no_grad():
        numpy.save(wanted_of(folder, item.name), work.module(*work.inputs).numpy())
        try:
            torch.onnx.export(work.module, tuple(work.inputs), path, dynamo=True, external_data=False, verbose=False)
        except TypeError:  # before PyTorch 2.5
            torch.onnx.export(work.module, tuple(work.inputs), path, opset_version=17)


def unequal(found, wanted):
    """The largest difference, and the largest value that was wanted; infinities that are equal do not count."""
    if found.shape != wanted.shape:
        raise RuntimeError(f"its result is {list(found.shape)}, PyTorch's {list(wanted.shape)}")
    apart = numpy.abs(numpy.subtract(found, wanted, out=numpy.zeros_like(wanted), where=found != wanted))
    return float(apart.max()), float(numpy.abs(wanted[numpy.isfinite(wanted)]).max())


def check(found, wanted):
    """Raises RuntimeError where a result is not PyTorch's."""
    difference, largest = unequal(found, wanted)
    if not difference <= 1e-3 * largest:
        raise RuntimeError(f"its values differ by {difference:.3g} from PyTorch's, of which the largest is {largest:.3g}")


def runs(peer, item, folder, threads):
    """The function that does the item's work once, after its result was found equal to PyTorch's."""
    shapes, run = importlib.import_module(MODULES[peer]).load(path_of(folder, item.name), threads)
    inputs = random_inputs(shapes)
    check(run(inputs), numpy.load(wanted_of(folder, item.name)))
    yield lambda: run(inputs)


def start(peer):
    """Its version; raises where it cannot run or nothing can be exported for it."""
    import onnx  # noqa: F401
    import onnxscript  # noqa: F401
    import torch  # noqa: F401
    return importlib.import_module(MODULES[peer]).start()

"""onnxruntime's runs of an item: PyTorch's module, exported once, then measured in processes without PyTorch."""
import os

import numpy
import onnxruntime

from peers.timing import random_inputs


def path_of(folder, name):
    return os.path.join(folder, name + ".onnx")


def session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    # It has threads of its own, which follow what OpenMP's are told.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0" if os.environ.get("OMP_WAIT_POLICY") == "passive" else "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def export(item, folder, threads):
    """Writes the item's model, and compares its result with PyTorch's."""
    import torch
    from peers.work import work_of
    work, path = work_of(item, "onnxruntime"), path_of(folder, item.name)
    # The fused kernel of whole layers of transformers has no ONNX.
    if hasattr(torch.backends, "mha"):
        torch.backends.mha.set_fastpath_enabled(False)
    work.module.eval()
    with torch.no_grad():
        wanted = work.module(*work.inputs).numpy()
        try:
            torch.onnx.export(work.module, tuple(work.inputs), path, dynamo=True, external_data=False, verbose=False)
        except TypeError:  # before PyTorch 2.5
            torch.onnx.export(work.module, tuple(work.inputs), path, opset_version=17)
    loaded = session(path, threads)
    (found,) = loaded.run(None, inputs_of(loaded))
    difference, largest = unequal(found, wanted)
    if not difference <= 1e-3 * largest:
        os.remove(path)
        raise RuntimeError(f"its values differ by {difference:.3g} from PyTorch's, of which the largest is {largest:.3g}")


def unequal(found, wanted):
    """The largest difference, and the largest value that was wanted; infinities that are equal do not count."""
    if found.shape != wanted.shape:
        raise RuntimeError(f"its result is {list(found.shape)}, PyTorch's {list(wanted.shape)}")
    apart = numpy.abs(numpy.subtract(found, wanted, out=numpy.zeros_like(wanted), where=found != wanted))
    return float(apart.max()), float(numpy.abs(wanted[numpy.isfinite(wanted)]).max())


def inputs_of(loaded):
    places = loaded.get_inputs()
    return dict(zip((place.name for place in places), random_inputs([place.shape for place in places])))


def runs(item, folder, threads):
    """The function that does the item's work once."""
    loaded = session(path_of(folder, item.name), threads)
    inputs = inputs_of(loaded)
    yield lambda: loaded.run(None, inputs)


def start():
    """Its version; raises where it cannot run or nothing can be exported for it."""
    import onnx  # noqa: F401
    import onnxscript  # noqa: F401
    import torch  # noqa: F401
    return onnxruntime.__version__

"""onnxruntime with all of its optimizations."""
import os

import onnxruntime


def load(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    # It has threads of its own, which follow what OpenMP's are told.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0" if os.environ.get("OMP_WAIT_POLICY") == "passive" else "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [place.name for place in session.get_inputs()]
    return [place.shape for place in session.get_inputs()], lambda inputs: session.run(None, dict(zip(names, inputs)))[0]


def start():
    return onnxruntime.__version__

#!/usr/bin/env python3
"""Runs random programs, as onnx::save() writes them, in onnxruntime.
   tools/dev/onnx_fuzz_saved.py build/tests/clnet-fuzz-onnx [--count N] [--seed N] [OPTION...]
Needs onnx, onnxruntime and numpy from PyPI. clnet-fuzz-onnx makes the programs, asks for each file to be run, and judges: its options
go on to it. A file must pass onnx's checker. A difference is reported with its seed and the shrunk program, and the exit code is 1.

onnxruntime runs in a process of its own, as it may abort: that is a failure of the seed, and the rest goes on."""

import multiprocessing
import pathlib
import re
import signal
import subprocess
import sys

import onnx
import onnxruntime
from onnx import helper, numpy_helper


def tensors(folder):
    result = []
    while (path := folder / f"input_{len(result)}.pb").exists():
        message = onnx.TensorProto()
        message.ParseFromString(path.read_bytes())
        result.append(numpy_helper.to_array(message))
    return result


def reason(error):
    """One line that is the same for the same kind of refusal."""
    text = " ".join(str(error).split())
    text = re.sub(r"node with name '[^']*'", "a node", text)
    return re.sub(r"Name:\s*'[^']*'", "", text)[:300] or type(error).__name__


def run(folder, plain):
    """The line that answers."""
    path = folder / "model.onnx"
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:  # the checker and shape inference have errors of their own
        return f"invalid {reason(error)}"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        for data in sorted(folder.glob("test_data_set_*")):
            results = session.run(None, dict(zip(names, tensors(data))))
            for k, value in enumerate(results):
                (data / f"other_{k}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
    except Exception as error:  # onnxruntime has one for each of its statuses
        return f"refused {reason(error)}"
    return "ran"


def empty_recurrence(folder):
    """The operator of a node that goes over no samples or steps. onnxruntime 1.32 looks for the largest of no lengths there, and
    mostly ends its process over what it finds."""
    for data in sorted(folder.glob("test_data_set_*")):
        model = onnx.load(folder / "model.onnx")
        for value, tensor in zip(model.graph.input, tensors(data)):
            value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, tensor.shape))
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        empty = {value.name for value in (*graph.input, *graph.value_info)
                 if any(extent.HasField("dim_value") and extent.dim_value == 0 for extent in value.type.tensor_type.shape.dim)}
        for node in graph.node:
            if node.op_type in ("GRU", "LSTM") and node.input[0] in empty:
                return node.op_type
    return None


def serve(connection):
    while True:
        try:
            asked = connection.recv()
        except EOFError:  # nobody asks any more
            return
        connection.send(run(*asked))


class Runner:
    """run() in another process, which is started again where it has ended."""

    def __init__(self):
        self.process = self.connection = None

    def start(self):
        context = multiprocessing.get_context("spawn")  # a forked process would hold this end of the pipe, too
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def __call__(self, *asked):
        if self.process is None:
            self.start()
        try:
            self.connection.send(asked)
            return self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code, self.process = self.process.exitcode, None
            if operator := empty_recurrence(asked[0]):
                return f"refused onnxruntime ends its process over an empty {operator}"
            return f"ended onnxruntime, {f'by {signal.Signals(-code).name}' if code < 0 else f'with {code}'}"


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    runner = Runner()
    with subprocess.Popen([sys.argv[1], "--ask", *sys.argv[2:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        for line in program.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word not in ("run", "plain") or not rest.startswith("/"):
                print(line, end="", flush=True)
                continue
            program.stdin.write(runner(pathlib.Path(rest), word == "plain") + "\n")
            program.stdin.flush()
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())

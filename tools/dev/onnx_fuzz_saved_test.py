#!/usr/bin/env python3
"""Checks that onnx_fuzz_saved.py goes on where onnxruntime ends its process. Needs onnx from PyPI."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SCRIPT = pathlib.Path(__file__).with_name("onnx_fuzz_saved.py")
# Stands in for clnet-fuzz-onnx: asks for each file and prints the answers.
PROGRAM = """#!/bin/sh
for file in first bad GRU GRU_of_some last; do
  echo "run $FOLDER/$file"
  read -r line
  echo "$file: $line"
done
exit 1
"""
ONNXRUNTIME = """
import os
import types
GraphOptimizationLevel = types.SimpleNamespace(ORT_DISABLE_ALL=0)
class SessionOptions:
    pass
class InferenceSession:
    def __init__(self, path, options, providers):
        if "bad" in path or "GRU" in path:
            os.abort()
    def get_inputs(self):
        return []
    def run(self, names, inputs):
        return []
"""


def write_gru(folder, batch):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, "batch", 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 1, "batch", 1])
    weights = [numpy_helper.from_array(numpy.ones([1, 3, 1], numpy.float32), name) for name in "wr"]
    nodes = [helper.make_node("Identity", ["x"], ["z"]), helper.make_node("GRU", ["z", "w", "r"], ["y"], hidden_size=1)]
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    tensor = numpy_helper.from_array(numpy.zeros([3, batch, 1], numpy.float32))
    (data / "input_0.pb").write_bytes(tensor.SerializeToString())


class Ends(unittest.TestCase):
    def test_an_abort_is_one_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "onnxruntime.py").write_text(ONNXRUNTIME)
            for name, batch in (("first", 1), ("bad", 1), ("GRU", 0), ("GRU_of_some", 2), ("last", 0)):
                write_gru(folder / name, batch)
            program = folder / "program"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            paths = f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
            environment = {**os.environ, "PYTHONPATH": paths, "FOLDER": str(folder)}
            result = subprocess.run([sys.executable, SCRIPT, program], capture_output=True, text=True, env=environment)
        self.assertEqual(result.stdout.splitlines(), [
            "first: ran", "bad: ended onnxruntime, by SIGABRT", "GRU: refused onnxruntime ends its process over an empty GRU",
            "GRU_of_some: ended onnxruntime, by SIGABRT", "last: ran"])
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("EOFError", result.stderr)


if __name__ == "__main__":
    unittest.main()

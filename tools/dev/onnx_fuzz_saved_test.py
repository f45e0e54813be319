#!/usr/bin/env python3
"""Checks that onnx_fuzz_saved.py goes on where onnxruntime ends its process."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("onnx_fuzz_saved.py")
# Stands in for clnet-fuzz-onnx: asks for three files and prints the answers.
PROGRAM = """#!/bin/sh
for file in good bad good; do
  echo "run $FOLDER/$file"
  read -r line
  echo "$file: $line"
done
exit 1
"""
ONNX = """
from types import SimpleNamespace
checker = SimpleNamespace(check_model=lambda path, full_check: None)
numpy_helper = None
"""
ONNXRUNTIME = """
import os
class SessionOptions:
    pass
class InferenceSession:
    def __init__(self, path, options, providers):
        if "/bad/" in path:
            os.abort()
    def get_inputs(self):
        return []
"""


class Ends(unittest.TestCase):
    def test_an_abort_is_one_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "onnx.py").write_text(ONNX)
            (folder / "onnxruntime.py").write_text(ONNXRUNTIME)
            program = folder / "program"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            environment = {**os.environ, "PYTHONPATH": str(folder), "FOLDER": str(folder)}
            result = subprocess.run([sys.executable, SCRIPT, program], capture_output=True, text=True, env=environment)
        self.assertEqual(result.stdout.splitlines(),
                         ["good: ran", "bad: ended onnxruntime, by SIGABRT", "good: ran"])
        self.assertEqual(result.returncode, 1)


if __name__ == "__main__":
    unittest.main()

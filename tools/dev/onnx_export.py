#!/usr/bin/env python3
"""Runs networks that clnet saved as ONNX files in other programs, and compares their outputs with clnet's.

Usage: tools/dev/onnx_export.py FOLDER [--opencv] [--rtol R] [--atol A] [NAME...]

FOLDER has cases in the layout of ONNX's tests, as the test program writes them:
    CLNET_ONNX_EXPORT_DIR=FOLDER build/tests/clnet-onnx-tests "[save]"
onnx's checker must accept each file, with its shapes, and onnxruntime give the same outputs. With --opencv OpenCV's DNN runs
the networks of images, too, but for those of OPENCV_LACKS. Needs the Python packages onnx and onnxruntime.
"""
import argparse
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper


# Networks that no legal form makes readable for Debian's OpenCV 4.6. Its Clip takes one input, as before operator set 11:
# initializers and Constant nodes as bounds are refused, and so is a Min with a constant. Its Gather takes constant indices alone,
# and it has no OneHot. OpenCV 4.7 reads Clip and Gather.
OPENCV_LACKS = {
    "mobilenetv2": "Clip with bounds as inputs",
    "char-lstm": "Gather by words, which are an input",
    "char-gpt": "Gather by words, which are an input",
}
# Cases with operators that onnxruntime has no kernel for.
ONNXRUNTIME_LACKS = {"op26_roi_align": "RoiAlign of operator set 22"}


def tensors(folder, kind):
    result = []
    while (path := folder / f"{kind}_{len(result)}.pb").exists():
        message = onnx.TensorProto()
        message.ParseFromString(path.read_bytes())
        result.append(numpy_helper.to_array(message))
    return result


def difference(got, expected, rtol, atol):
    """What differs; None: nothing."""
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    a, b = got.astype(numpy.float64), expected.astype(numpy.float64)
    if numpy.allclose(a, b, rtol, atol, equal_nan=True):
        return None
    return f"differs by up to {numpy.nanmax(numpy.abs(a - b)):.3g}"


def data_sets(folder):
    return sorted(folder.glob("test_data_set_*"))


def run_onnxruntime(folder, rtol, atol):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    for data in data_sets(folder):
        outputs = session.run(None, dict(zip(names, tensors(data, "input"))))
        for i, expected in enumerate(tensors(data, "output")):
            if why := difference(outputs[i], expected, rtol, atol):
                return f"{data.name}: output {i}: {why}"
    return None


def run_opencv(folder, rtol, atol):
    import cv2
    for data in data_sets(folder):
        net = cv2.dnn.readNetFromONNX(str(folder / "model.onnx"))
        net.setInput(tensors(data, "input")[0])
        if why := difference(net.forward(), tensors(data, "output")[0], rtol, atol):
            return f"{data.name}: {why}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--opencv", action="store_true")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-4)
    arguments = parser.parse_args()
    folders = [arguments.folder / name for name in arguments.names] or sorted(arguments.folder.iterdir())
    failed = 0
    for folder in folders:
        try:
            onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
            why = None
            if folder.name not in ONNXRUNTIME_LACKS:
                why = run_onnxruntime(folder, arguments.rtol, arguments.atol)
            is_network = not folder.name.startswith(("op_", "op26_", "example_", "again_"))
            if not why and arguments.opencv and is_network and folder.name not in OPENCV_LACKS:
                why = run_opencv(folder, arguments.rtol, arguments.atol)
        except Exception as error:  # each library has errors of its own
            why = str(error).strip().splitlines()[0][:300]
        failed += bool(why)
        print(f"FAIL {folder.name}: {why}" if why else f"pass {folder.name}", flush=True)
    print(f"{len(folders) - failed} passed, {failed} failed")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main())

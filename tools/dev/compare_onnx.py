#!/usr/bin/env python3
"""Runs ONNX files in clnet-run, onnxruntime and OpenVINO on the CPU, in turn, and prints times and ratios.

  tools/dev/compare_onnx.py [--run build/tools/clnet-run] [--rounds 5] [--seconds 0.5] [--warm 5] [--threads N] [--json FILE] MODEL...
  tools/dev/compare_onnx.py --export FOLDER     writes resnet18, resnet50, mobilenetv2, vit and bert there first, and runs them

A model is an ONNX file, or a folder with model.onnx. Inputs are those of a test_data_set_0 beside it, else random ones; extents without
a number are 1, of texts 64. Needs onnx, onnxruntime, openvino and numpy, for --export also torch, torchvision and onnxscript.

clnet first runs for --warm seconds: launch batches, which it compiles beside a program that runs often, are in its cache then. Each
round runs each side in a process of its own, for --seconds after the first runs. A ratio is the peer's time by clnet's: above 1,
clnet is faster. The ratio of the medians of all rounds stands beside that of the best times. Where other programs load the machine, the
best times say more. Results are compared with onnxruntime's. The bars: 1 of onnxruntime and 0.8 of OpenVINO where onnxruntime takes
over 2 ms, else 0.5 of both.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from peers.processes import POLICIES, ask, best_environment

PEERS = ["onnxruntime", "openvino"]


def inputs_of(path, folder):
    """Writes the inputs as .npy into the folder; returns [name, file] of each."""
    import numpy
    import onnx
    from onnx import numpy_helper
    model = onnx.load(path, load_external_data=False)
    own = {tensor.name for tensor in model.graph.initializer}
    generator = numpy.random.default_rng(1)
    written = []
    for place in model.graph.input:
        if place.name in own:
            continue
        given = os.path.join(os.path.dirname(path), "test_data_set_0", f"input_{len(written)}.pb")
        if os.path.exists(given):
            with open(given, "rb") as file:
                value = numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
        else:
            kind = onnx.helper.tensor_dtype_to_np_dtype(place.type.tensor_type.elem_type)
            whole = numpy.issubdtype(kind, numpy.integer)
            dims = place.type.tensor_type.shape.dim
            shape = [dim.dim_value or (64 if whole and at else 1) for at, dim in enumerate(dims)]
            value = generator.integers(0, 64, shape).astype(kind) if whole else generator.random(shape).astype(kind)
        file = os.path.join(folder, f"input_{len(written)}.npy")
        numpy.save(file, value)
        written.append([place.name, file])
    return written


def loaded(peer, path, threads):
    """A function from arrays by name to all results."""
    if peer == "onnxruntime":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        spins = "0" if os.environ.get("OMP_WAIT_POLICY") == "passive" else "1"
        options.add_session_config_entry("session.intra_op.allow_spinning", spins)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(None, inputs)
    import openvino
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    core = openvino.Core()
    model = core.read_model(path)
    with_data = {place.any_name: place for place in model.inputs}
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()

    def run(inputs):
        results = request.infer({name: value for name, value in inputs.items() if name in with_data}, share_inputs=True,
                                share_outputs=True)
        return [results[at] for at in range(len(compiled.outputs))]
    return run


def measured(peer, path, files, seconds, threads, results):
    """[median, best] in ms; the results go into a file."""
    import numpy
    from peers.timing import sample
    run = loaded(peer, path, threads)
    inputs = {name: numpy.load(file) for name, file in files}
    numpy.savez(results, *[numpy.asarray(result) for result in run(inputs)])
    return sample(lambda: run(inputs), seconds)[:2]


def clnet_run(program, path, files, repeat, folder, *options):
    """[first, median, best] in ms."""
    done = subprocess.run([program, path, *[f"{name}={file}" for name, file in files], "--repeat", str(repeat), "--top", "0",
                           "--output-dir", folder, "--format", "npy", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=best_environment(len(os.sched_getaffinity(0))))
    found = re.search(r"first run ([\d.]+) ms(?:, then ([\d.]+) ms \(median of \d+\), at best ([\d.]+) ms)?", done.stdout)
    if done.returncode or not found:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it said nothing"])[-1])
    return [float(number or found[1]) for number in found.groups()]


def difference(folder, wanted):
    """The largest difference of the first output, relative to its largest value."""
    import numpy
    found = numpy.load(os.path.join(folder, "output_0.npy"))
    with numpy.load(wanted) as results:
        expected = results["arr_0"]
    if found.shape != expected.shape:
        return float("inf")
    largest = float(numpy.abs(expected).max()) if expected.size else 0
    apart = float(numpy.abs(found.astype(float) - expected.astype(float)).max()) if expected.size else 0
    return apart / max(largest, 1e-30)


def compare(path, options):
    """A row: times by side, and the problems."""
    times, problems = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        files = inputs_of(path, folder)
        wanted = {peer: os.path.join(folder, peer + ".npz") for peer in PEERS}
        first = clnet_run(options.run, path, files, 10, folder, *options.option)
        repeats = [max(10, min(100000, int(seconds * 1000 / first[2]))) for seconds in (options.seconds, options.warm)]
        if options.warm > 0:
            clnet_run(options.run, path, files, repeats[1], folder, *options.option)
        for _ in range(options.rounds):
            times.setdefault("clnet", []).append(clnet_run(options.run, path, files, repeats[0], folder,
                                                           *options.option)[1:])
            for peer in PEERS:
                sides = []
                for policy in POLICIES:
                    answer = ask(__file__, peer, options.threads, path, "--seconds", str(options.seconds / 2), "--files", json.dumps(files),
                                 "--results", wanted[peer], policy=policy)
                    if "ms" in answer:
                        sides.append(answer["ms"])
                    else:
                        problems[peer] = answer.get("problem", "?")
                if sides:
                    times.setdefault(peer, []).append([min(column) for column in zip(*sides)])
        if os.path.exists(wanted["onnxruntime"]):
            problems["difference"] = difference(folder, wanted["onnxruntime"])
    return times, problems


def row_of(name, times, problems):
    """Cells of the table; times by side are [median, best] of each round."""
    def of(side, which):
        return (statistics.median if which == 0 else min)([each[which] for each in times[side]])
    cells = [name, f"{of('clnet', 0):.2f}", f"{of('clnet', 1):.2f}"]
    ratios = {}
    for peer in PEERS:
        if peer not in times:
            cells += ["–"] * 4
            continue
        cells += [f"{of(peer, 0):.2f}", f"{of(peer, 1):.2f}"]
        ratios[peer] = [of(peer, which) / of("clnet", which) for which in (0, 1)]
        cells += [f"{ratio:.2f}" for ratio in ratios[peer]]
    slow = "onnxruntime" in times and of("onnxruntime", 1) > 2
    bars = {"onnxruntime": 1.0, "openvino": 0.8} if slow else dict.fromkeys(PEERS, 0.5)
    below = [peer for peer in ratios if ratios[peer][1] < bars[peer]]
    cells.append("below " + " and ".join(below) if below else "")
    cells.append(f"{problems['difference']:.1e}" if "difference" in problems else "–")
    return cells


def export(folder):
    """Networks of torchvision with random weights (vit is the tiny one), and an encoder of texts; returns their files."""
    import torch
    import torchvision

    class Encoder(torch.nn.Module):
        """BERT of six layers, 384 wide."""
        def __init__(self):
            super().__init__()
            self.words, self.places = torch.nn.Embedding(1000, 384), torch.nn.Parameter(torch.randn(64, 384))
            layer = torch.nn.TransformerEncoderLayer(384, 6, 1536, activation="gelu", batch_first=True)
            self.layers = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)

        def forward(self, words):
            return self.layers(self.words(words) + self.places)

    torch.backends.mha.set_fastpath_enabled(False)
    torch.manual_seed(1)
    image = torch.rand(1, 3, 224, 224)
    vit = torchvision.models.VisionTransformer(224, 16, 12, 3, 192, 768)
    networks = {"resnet18": (torchvision.models.resnet18(), image), "resnet50": (torchvision.models.resnet50(), image),
                "mobilenetv2": (torchvision.models.mobilenet_v2(), image), "vit": (vit, image),
                "bert": (Encoder(), torch.randint(0, 1000, (1, 64)))}
    os.makedirs(folder, exist_ok=True)
    paths = []
    for name, (network, x) in networks.items():
        paths.append(os.path.join(folder, name + ".onnx"))
        if not os.path.exists(paths[-1]):
            torch.onnx.export(network.eval(), (x,), paths[-1], dynamo=True, external_data=False, verbose=False)
    return paths


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--run", default="build/tools/clnet-run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--warm", type=float, default=5, help="seconds that clnet runs before")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--option", action="append", default=[], help="of clnet-run, as --option=--no-passes")
    parser.add_argument("--export", metavar="FOLDER")
    parser.add_argument("--json")
    for hidden in ("--worker", "--files", "--results"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def worker(options):
    from peers.processes import ANSWER, first_line
    try:
        answer = {"ms": measured(options.worker, options.models[0], json.loads(options.files), options.seconds, options.threads,
                                 options.results)}
    except Exception as problem:
        answer = {"problem": first_line(problem)}
    print("\n" + ANSWER + json.dumps(answer))


def name_of(path):
    return os.path.basename(os.path.dirname(path)) if os.path.basename(path) == "model.onnx" else os.path.basename(path)[:-len(".onnx")]


def main():
    options = options_of(sys.argv[1:])
    if options.worker:
        return worker(options)
    paths = [os.path.join(path, "model.onnx") if os.path.isdir(path) else path for path in options.models]
    if options.export:
        paths += export(options.export)
    print("| model | clnet, ms | best | onnxruntime | best | ratio | of best | OpenVINO | best | ratio | of best | bars | difference |")
    print("|---" * 13 + "|")
    record = {}
    for path in paths:
        try:
            times, problems = compare(path, options)
        except RuntimeError as problem:
            print(f"| {name_of(path)} | {problem} |", flush=True)
            continue
        record[name_of(path)] = {"times": times, "problems": problems}
        print("| " + " | ".join(row_of(name_of(path), times, problems)) + " |", flush=True)
        for peer in PEERS:
            if peer in problems:
                print(f"{peer}: {problems[peer]}", file=sys.stderr)
    print("machine's load: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(record, file)


if __name__ == "__main__":
    main()

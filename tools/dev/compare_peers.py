#!/usr/bin/env python3
"""Measures items of clnet-bench and the same work in PyTorch, torch.compile and onnxruntime, in turn, and prints the ratios as a table.

  tools/dev/compare_peers.py [--peers pytorch,loop,compiled,onnxruntime] [--rounds 3] [--seconds 1] [--threads N] [--cpu] [--json FILE]
                             [--write docs/performance.md] [item...]

Needs build/tools/clnet-bench (--bench names another), and for the Python that runs it torch, for onnxruntime also onnx and onnxscript: a
virtual environment with the registry's newest (pip install torch onnx onnxruntime onnxscript), or Debian's python3-torch and
/usr/bin/python3 for PyTorch alone. torch.compile needs a C++ compiler. Peers that cannot run here are named in the table's head, items
that a peer cannot run are "–".

Each peer runs in processes of its own with its best settings: OPENBLAS_CORETYPE and the like unset, the OpenMP build of OpenBLAS first
on the library path where there is one, as many threads as cores, a heap that is kept. PyTorch counts with the fastest of its layouts:
plain, channels_last and, for inference, oneDNN's own with packed weights; torch.compile with the first two and with packed weights, its
compiling not in the measurement; onnxruntime with all of its optimizations of the exported module, NumPy arrays in and out, after its
values were found equal to PyTorch's. lstm-by-hand stands beside PyTorch's own LSTM and, as "loop", beside the same operations written in
PyTorch. Where other programs load the machine, spinning threads lose many times over, which flatters clnet: the peers also get threads
that sleep while they wait (the better of both counts), the ratio of the best times stands beside that of the medians, and the table
says how loaded the machine was. A ratio is the peer's time by clnet's: above 1, clnet is faster.

Items are those of clnet-bench --list; without names all of BARS are measured. --cpu adds the CPU time of all threads of the peers'
processes per run. --write replaces what is between <!-- ratios --> and <!-- end of ratios --> in a file, --json writes the median, best
and CPU time of every round.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from peers.items import PEERS, can_run, parse
from peers.processes import ask, measure_clnet, measure_peer, worker
from peers.table import TITLES, replace_between_marks, summary, table

BARS = """matmul-1024 conv-3-64-224-b16-forward
conv-64-64-56-b16-forward conv-64-64-56-b16-backward-data conv-64-64-56-b16-backward-weights
conv-128-128-28-b16-forward conv-128-128-28-b16-backward-data conv-128-128-28-b16-backward-weights
conv-256-256-14-b16-forward conv-256-256-14-b16-backward-data conv-256-256-14-b16-backward-weights
conv-512-512-7-b16-forward conv-512-512-7-b16-backward-data conv-512-512-7-b16-backward-weights
conv1x1-256-64-56-b16-forward conv1x1-64-256-56-b16-forward depthwise-144-56-b16-forward
keras-cnn-train-b32 keras-cnn-train-b128 cnn-train-b64 cnn-train-b256
resnet18-infer-b1 resnet18-infer-b16 resnet18-train-b16 mobilenetv2-infer-b16 mobilenetv2-train-b16""".split()


def device(bench):
    """What clnet runs on, by the clnet-info beside clnet-bench."""
    done = subprocess.run([os.path.join(os.path.dirname(bench), "clnet-info"), "--json"], check=True, stdout=subprocess.PIPE)
    found = next(d for d in json.loads(done.stdout)["devices"] if d["default"])
    return f'{found["platform"]} {found["driver_version"]}, {found["native_float_width"]} floats wide'


def commit():
    done = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe", "--always", "--dirty"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().strip() or "(no git)"


def started(peers, threads):
    """The versions of the peers that run here, and a line for each of the others."""
    versions, missing = {}, []
    for peer in peers:
        answer = ask(__file__, "start-" + peer, threads)
        if "version" in answer:
            versions[peer] = answer["version"]
        else:
            missing.append(f"{TITLES[peer]} cannot run here: {answer['problem']}")
    return versions, missing


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("items", nargs="*")
    parser.add_argument("--peers", default=",".join(PEERS), help="of these, by comma (default: all that run here)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--bench", default="build/tools/clnet-bench")
    parser.add_argument("--cpu", action="store_true", help="show the peers' CPU times, too")
    parser.add_argument("--json")
    parser.add_argument("--write")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--models", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        return options
    options.items = options.items or BARS
    options.peers = options.peers.split(",")
    for peer in options.peers:
        if peer not in PEERS:
            parser.error(f"there is no peer '{peer}'; there are {', '.join(PEERS)}")
    for name in options.items:
        if not parse(name):
            parser.error(f"there is no item named '{name}' here; clnet-bench --list prints clnet's, BARS in this file those compared")
    return options


def measure(options, peers):
    """Sides of clnet and of each peer, their problems, and the loads: all in turn in each round."""
    ours, theirs, problems, load = {}, {peer: {} for peer in peers}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name in options.items:
                load.append(os.getloadavg()[0])
                print(name, file=sys.stderr)
                ours.setdefault(name, []).append(measure_clnet(options.bench, name, options.seconds))
                for peer in peers:
                    if (peer, name) in problems or not can_run(peer, parse(name)):
                        continue
                    result = measure_peer(__file__, peer, name, options.seconds, options.threads, folder)
                    if "problem" in result:
                        problems[peer, name] = result["problem"]
                        theirs[peer].pop(name, None)
                    else:
                        theirs[peer].setdefault(name, []).append(result["ms"])
    return ours, theirs, problems, load


def main():
    options = options_of(sys.argv[1:])
    if options.worker:
        return worker(options.worker, options.items, options.seconds, options.threads, options.models)
    known = subprocess.run([options.bench, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    if unknown := [name for name in options.items if name not in known]:
        sys.exit(f"{options.bench} knows no item named {', '.join(unknown)}; --list prints the names")
    able = [peer for peer in options.peers if any(can_run(peer, parse(name)) for name in options.items)]
    versions, missing = started(able, options.threads)
    ours, theirs, problems, load = measure(options, list(versions))
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())[1]
    rounds = f"{options.rounds} interleaved round" + ("s" if options.rounds > 1 else "")
    measured = "; ".join(f"{TITLES[peer]} {version}" for peer, version in versions.items())
    lines = [f"{model}, {options.threads} threads; clnet {commit()} on {device(options.bench)}; {measured or 'no peer'}; "
             f"medians of {rounds} of {options.seconds:g} s per item and side; "
             f"load average while measuring {min(load):.1f} to {max(load):.1f}.", ""]
    for line in missing:
        lines += [line, ""]
    lines += table(options.items, ours, theirs, options.cpu) + ["", summary(ours, theirs)]
    for (peer, name), problem in problems.items():
        lines += ["", f"{TITLES[peer]} does not run `{name}`: {problem}"]
    print("\n".join(lines))
    if options.json:
        results = []
        for name in options.items:
            result = {"name": name, "clnet_median_best_ms": ours[name]}
            for peer in versions:
                if name in theirs[peer]:
                    result[peer + "_median_best_ms"] = [times[:2] for times in theirs[peer][name]]
                    result[peer + "_cpu_ms"] = [times[2] for times in theirs[peer][name]]
            results.append(result)
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    if options.write:
        with open(options.write) as file:
            text = file.read()
        try:
            text = replace_between_marks(text, lines)
        except ValueError as problem:
            sys.exit(f"{options.write}: {problem}")
        with open(options.write, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()

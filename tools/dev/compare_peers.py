#!/usr/bin/env python3
"""Measures items of clnet-bench and the same work in PyTorch, torch.compile, onnxruntime and OpenVINO, in turn, and prints the ratios.

  tools/dev/compare_peers.py [--peers pytorch,loop,compiled,onnxruntime,openvino] [--rounds 3] [--seconds 1] [--threads N] [--cpu]
                             [--avx2] [--json FILE] [item...] [--ledger [FOLDER]]

Needs build/tools/clnet-bench (--bench names another), and for the Python that runs it torch, for onnxruntime and OpenVINO also onnx and
onnxscript: a virtual environment with the registry's newest (pip install torch onnx onnxscript onnxruntime openvino), or Debian's
python3-torch and /usr/bin/python3 for PyTorch alone. torch.compile needs a C++ compiler. Peers that cannot run here are named in the
table's head, items that a peer cannot run are "–".

Each peer runs in processes of its own with its best settings: OPENBLAS_CORETYPE and the like unset, the OpenMP build of OpenBLAS first
on the library path where there is one, as many threads as cores, a heap that is kept. PyTorch counts with the fastest of its layouts:
plain, channels_last and, for inference, oneDNN's own with packed weights; torch.compile with the first two and with packed weights, its
compiling not in the measurement; onnxruntime with all of its optimizations of the exported module, and OpenVINO with its hint for
latency, in f32, NumPy arrays in and out, after their values were found equal to PyTorch's. lstm-by-hand stands beside PyTorch's own LSTM
and, as "loop", beside the same operations written in PyTorch. Where other programs load the machine, spinning threads lose many times
over, which flatters clnet: the peers also get threads that sleep while they wait (the better of both counts), the ratio of the best
times stands beside that of the medians, and the table says how loaded the machine was. A ratio is the peer's time by clnet's: above 1,
clnet is faster.

Items are those of clnet-bench --list; without names all of BARS are measured. --cpu adds the CPU time of all threads of the peers'
processes per run. --ledger puts the ratios into the ledger (bench/ledger, or FOLDER) as entries of the class of machine at hand, with
what clnet took, and without what was tuned here; tools/dev/ledger.py page then renews the pages. --avx2 keeps clnet and the peers to AVX2
on a CPU with AVX-512, which is a class of its own, and leaves out onnxruntime, which nothing keeps from AVX-512. --json writes the median,
best and CPU time of every round.
"""
import argparse
import datetime
import json
import os
import platform
import signal
import re
import statistics
import subprocess
import sys
import tempfile

import ledger
from kernel_text import Kernels
from peers.items import PEERS, can_run, parse
from peers.processes import AVX2, ask, measure_clnet, measure_peer, worker
from peers.table import TITLES, ratios_of, summary, table
from peers.taken import DECIDING, hash_of, log_of, taken_of

BARS = """matmul-1024 conv-3-64-224-b16-forward
conv-64-64-56-b16-forward conv-64-64-56-b16-backward-data conv-64-64-56-b16-backward-weights
conv-128-128-28-b16-forward conv-128-128-28-b16-backward-data conv-128-128-28-b16-backward-weights
conv-256-256-14-b16-forward conv-256-256-14-b16-backward-data conv-256-256-14-b16-backward-weights
conv-512-512-7-b16-forward conv-512-512-7-b16-backward-data conv-512-512-7-b16-backward-weights
conv1x1-256-64-56-b16-forward conv1x1-64-256-56-b16-forward depthwise-144-56-b16-forward
keras-cnn-train-b32 keras-cnn-train-b128 cnn-train-b64 cnn-train-b256
resnet18-infer-b1 resnet18-infer-b16 resnet18-train-b16 mobilenetv2-infer-b16 mobilenetv2-train-b16""".split()


# What keeps clnet to AVX2, and PoCL with the code that it compiles.
CLNET_AVX2 = {"CLNET_VECTOR_WIDTH": "8", "POCL_KERNELLIB_NAME": "avx2"}


def output_of(*command):
    """What a program of the build prints; ends with one line where it does not run."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as problem:
        sys.exit(f"{command[0]}: {problem.strerror}; build clnet, or name another clnet-bench by --bench")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {last}")
    return done.stdout


def default_device(bench):
    """What clnet runs on, by the clnet-info beside clnet-bench."""
    found = json.loads(output_of(os.path.join(os.path.dirname(bench), "clnet-info"), "--json"))["devices"]
    device = next((device for device in found if device["default"]), None)
    return device or sys.exit("clnet-info names no default device among " + (", ".join(device["name"] for device in found) or "none"))


def driver(device):
    return f'{device["platform"]} {device["driver_version"]}'


def cpu_says(key):
    """A field of /proc/cpuinfo; empty where it has none."""
    with open("/proc/cpuinfo") as file:
        found = re.search(rf"{key}\s*: (.*)", file.read())
    return found[1] if found else ""


def processor():
    return cpu_says("model name") or platform.machine()


def has_avx512():
    return "avx512f" in cpu_says("flags").split()


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
    parser.add_argument("--avx2", action="store_true", help="keep all to AVX2, on a CPU with AVX-512")
    parser.add_argument("--json")
    parser.add_argument("--ledger", nargs="?", const=str(ledger.FOLDER), metavar="FOLDER")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--models", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        return options
    if options.ledger and parse(options.ledger):  # an item behind --ledger is no folder
        options.items, options.ledger = [options.ledger] + options.items, str(ledger.FOLDER)
    if options.ledger and not os.path.isdir(options.ledger) and options.ledger != str(ledger.FOLDER):
        parser.error(f"--ledger: '{options.ledger}' is no folder and no item")
    for name in ("rounds", "seconds", "threads"):
        if not getattr(options, name) > 0:
            parser.error(f"--{name}: {getattr(options, name)} is not above 0")
    options.items = options.items or BARS
    options.peers = options.peers.split(",")
    for peer in options.peers:
        if peer not in PEERS:
            parser.error(f"there is no peer '{peer}'; there are {', '.join(PEERS)}")
    for name in options.items:
        if not parse(name):
            parser.error(f"there is no item named '{name}' here; clnet-bench --list prints clnet's, BARS in this file those compared")
    decided = [name for name in DECIDING if os.environ.get(name)]
    if options.ledger and decided:
        parser.error(f"--ledger: {decided[0]} is set, and an entry is of what clnet does by itself")
    return options


def measure(options, peers):
    """Sides of clnet and of each peer, their problems, and the loads: all in turn in each round. Interrupted, it leaves out the round
    that was under way, if it was not the first."""
    ours, theirs, problems, load = {}, {peer: {} for peer in peers}, {}, []

    def one_round(folder):
        of_clnet, of_peers = {}, {}
        for name in options.items:
            load.append(os.getloadavg()[0])
            print(name, file=sys.stderr)
            of_clnet[name] = measure_clnet(options.bench, name, options.seconds)
            for peer in peers:
                if (peer, name) in problems or not can_run(peer, parse(name)):
                    continue
                result = measure_peer(__file__, peer, name, options.seconds, options.threads, folder,
                                      AVX2 if options.avx2 else {})
                if "problem" in result:
                    problems[peer, name] = result["problem"]
                    theirs[peer].pop(name, None)
                else:
                    of_peers[peer, name] = result["ms"]
        for name, times in of_clnet.items():
            ours.setdefault(name, []).append(times)
        for (peer, name), times in of_peers.items():
            theirs[peer].setdefault(name, []).append(times)

    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            try:
                one_round(folder)
            except KeyboardInterrupt:
                if number == 0:
                    raise
                print(f"interrupted: {number} of {options.rounds} rounds count", file=sys.stderr)
                break
    return ours, theirs, problems, load


def entries_of(options, ours, theirs, taken, common):
    """What --ledger enters: for each item and peer that was measured. taken: name -> what clnet took; common: what all entries say."""
    entries = []
    for name in options.items:
        for peer, measured in theirs.items():
            if name not in measured:
                continue
            ratios, best = ratios_of(ours[name], measured[name])

            def median(sides):
                return round(statistics.median(times[0] for times in sides), 4)
            entries.append({"item": name, "peer": peer, "ratio": round(statistics.median(ratios), 3), "rounds": len(ratios), **common,
                            "versions": {"driver": common["versions"]["driver"], peer: common["versions"][peer]},
                            "hash": hash_of(taken[name]), "best": round(best, 3), "spread": [round(ratios[0], 3), round(ratios[-1], 3)],
                            "clnet_ms": median(ours[name]), "peer_ms": median(measured[name]), "seconds": options.seconds,
                            "threads": options.threads})
    return entries


def enter(options, machine, device, versions, ours, theirs):
    """Writes the ledger of the class at hand; its path."""
    kernels = Kernels(ledger.ROOT / "kernels")
    measured = [item for item in options.items if any(item in of_peer for of_peer in theirs.values())]
    taken = {item: taken_of(item, log_of(options.bench, item), kernels) for item in measured}
    common = {"date": datetime.date.today().isoformat(), "commit": ledger.commit(), "cpu": processor(),
              "versions": {"driver": driver(device), **versions}}
    entries = entries_of(options, ours, theirs, taken, common)
    return ledger.write(options.ledger, ledger.merged(ledger.read(options.ledger, machine), entries,
                                                      {hash_of(what): what for what in taken.values()}))


def write_json(options, versions, ours, theirs):
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


def prepared(options):
    """The device and its class, after all that can be wrong before measuring."""
    if options.avx2:
        if not has_avx512():
            sys.exit("--avx2: this CPU has no AVX-512 to be kept from; measure without --avx2")
        os.environ.update(CLNET_AVX2)
    known = output_of(options.bench, "--list").split()
    if unknown := [name for name in options.items if name not in known]:
        sys.exit(f"{options.bench} knows no item named {', '.join(unknown)}; --list prints the names")
    device = default_device(options.bench)
    machine = ledger.class_of(device, platform.machine(), has_avx512())
    if options.avx2 and machine != "avx2-on-avx512":
        sys.exit(f"--avx2: {device['name']} on {device['platform']} is not kept to AVX2 so, but of class {machine}")
    if options.ledger:
        if device["type"].lower() != "cpu":
            sys.exit(f"--ledger: {device['name']} is no CPU, where the peers compute; tools/dev/ledger.py gpu takes what real_gpu.sh measured")
        try:
            ledger.read(options.ledger, machine)
        except ValueError as problem:
            sys.exit(f"--ledger: {problem}")
        os.environ["CLNET_TUNE"] = "off"
    return device, machine


def compare(options):
    device, machine = prepared(options)
    able = [peer for peer in options.peers if any(can_run(peer, parse(item)) for item in options.items)]
    free = [peer for peer in able if options.avx2 and peer == "onnxruntime"]
    versions, missing = started([peer for peer in able if peer not in free], options.threads)
    missing += [f"{TITLES[peer]} is left out: nothing keeps it to AVX2" for peer in free]
    ours, theirs, problems, load = measure(options, list(versions))
    done = max(map(len, ours.values()))
    rounds = f"{done} interleaved round" + ("s" if done > 1 else "")
    measured = "; ".join(f"{TITLES[peer]} {version}" for peer, version in versions.items())
    limit = ", kept to AVX2" if options.avx2 else ""
    lines = [f"{processor()}{limit}, {options.threads} threads; "
             f"clnet {ledger.commit()} on {driver(device)}, {device['native_float_width']} floats wide; "
             f"{measured or 'no peer'}; "
             f"medians of {rounds} of {options.seconds:g} s per item and side; "
             f"load average while measuring {min(load):.1f} to {max(load):.1f}.", ""]
    for line in missing:
        lines += [line, ""]
    lines += table(options.items, ours, theirs, options.cpu) + ["", summary(ours, theirs)]
    for (peer, name), problem in problems.items():
        lines += ["", f"{TITLES[peer]} does not run `{name}`: {problem}"]
    print("\n".join(lines))
    failures = []
    if options.ledger:
        try:
            print(f"entered into {enter(options, machine, device, versions, ours, theirs)}")
        except (OSError, RuntimeError, ValueError) as problem:
            failures.append(f"--ledger: {problem}")
    if options.json:
        try:
            write_json(options, versions, ours, theirs)
        except OSError as problem:
            failures.append(f"--json: {problem}")
    if failures:
        sys.exit("\n".join(failures))


def main(arguments=None):
    options = options_of(arguments)
    if options.worker:
        return worker(options.worker, options.items, options.seconds, options.threads, options.models)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        compare(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()

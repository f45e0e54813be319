#!/usr/bin/env python3
"""Compares clnet-run with onnxruntime on random ONNX graphs.
   tools/dev/onnx_fuzz.py CLNET_RUN [--seed N] [--count N] [--batch N] [--keep FOLDER]
Needs onnx, onnxruntime and numpy from PyPI. Each seed makes a graph of 3 to 12 nodes in an operator set from 11 to 21. What
onnxruntime computes is written in the layout of ONNX's tests, and `clnet-run --check` compares. A difference is reported with its
seed and, where a node alone shows it, with that node. The exit code is 1 where there is one.

Functions with steps take only numbers that are the same in both, as a rounding error may cross a step: Value.exact says so."""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from onnx import helper, numpy_helper

from onnx_fuzz_graph import Graph, Refused, make_model
from onnx_fuzz_operators import OPERATORS


def make_graph(seed, counts):
    g = Graph(seed)
    wanted = g.random.randint(3, 12)
    names = sorted(OPERATORS)
    tries = 0
    while len(g.nodes) < wanted and tries < 60:
        tries += 1
        name = g.random.choice(names)
        function, since, until = OPERATORS[name]
        if not since <= g.opset <= until:
            continue
        before = len(g.values), len(g.nodes)
        try:
            function(g, name)
            counts[name] += 1
        except (Refused, IndexError, ValueError, ZeroDivisionError) as error:
            counts["refused " + name] += 1
            if os.environ.get("ONNX_FUZZ_SHOW"):
                print(name, g.opset, str(error)[:200], file=sys.stderr)
            if len(g.nodes) == before[1]:
                del g.values[before[0]:]
    return g


def reads(node):
    return set(node.input) | set(node.doc_string.split())


def write_case(folder, nodes, values, outputs, opset):
    """values: all of the graph; those that no node makes are inputs or initializers."""
    made = {name for node in nodes for name in node.output}
    used = set().union(*[reads(node) for node in nodes])
    leaves = [v for v in values if v.name in used and v.name not in made]
    inputs, constants = [v for v in leaves if not v.constant], [v for v in leaves if v.constant]
    model = make_model(nodes, inputs, constants, outputs, opset)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, list_of in (("input", inputs), ("output", outputs)):
        for k, value in enumerate(list_of):
            (data / f"{kind}_{k}.pb").write_bytes(numpy_helper.from_array(value.array, value.name).SerializeToString())


def needed(g, outputs):
    """The nodes that these outputs need."""
    wanted, nodes = {v.name for v in outputs}, []
    for node in reversed(g.nodes):
        if wanted & set(node.output):
            nodes.insert(0, node)
            wanted |= reads(node)
    return nodes


def write_graph(g, folder):
    used = set().union(*[reads(node) for node in g.nodes]) if g.nodes else set()
    made = [v for v in g.values if v.name in g.made]
    outputs = [v for v in made if v.name not in used or g.chance(0.3)]
    if outputs:
        write_case(folder, g.nodes, g.values, outputs, g.opset)
    return bool(outputs)


def check(program, folder, cases):
    """The line of each case, by name. A program that ends early is run again without the case that ended it."""
    lines, left = {}, list(cases)
    while left:
        command = [program, "--rtol", "2e-3", "--atol", "1e-3", "--timeout", "60"]
        for case in left:
            command += ["--check", str(folder / case)]
        result = subprocess.run(command, capture_output=True, text=True)
        for line in result.stdout.splitlines():
            name, _, text = line.partition(": ")
            if name in left:
                lines[name] = text
        rest = [case for case in left if case not in lines]
        if rest:
            lines[rest[0]] = f"FAIL ended with {result.returncode}: {result.stderr.strip()[-300:]}"
            rest = rest[1:]
        left = rest
    return lines


def text_of(node, values):
    by_name = {v.name: v for v in values}
    inputs = [f"{by_name[name].array.dtype}{list(by_name[name].shape)}" if name else "-" for name in node.input]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.type not in (5, 10)}
    return f"{node.op_type}({', '.join(inputs)}) {attributes}"


def reduce_to_nodes(program, g, folder):
    """Each node alone, with what onnxruntime gives it: those that differ."""
    cases = {}
    for k, node in enumerate(g.nodes):
        outputs = [v for v in g.values if v.name in node.output]
        write_case(folder / f"node_{k}", [node], g.values, outputs, g.opset)
        cases[f"node_{k}"] = node
    lines = check(program, folder, list(cases))
    return [f"{text_of(cases[name], g.values)}: {line}" for name, line in lines.items() if line != "pass"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--keep", help="a folder for the cases that differ")
    options = parser.parse_args()
    counts, results, seen = collections.Counter(), collections.Counter(), set()
    for first in range(options.seed, options.seed + options.count, options.batch):
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            seeds = range(first, min(first + options.batch, options.seed + options.count))
            graphs = {f"seed_{seed}": make_graph(seed, counts) for seed in seeds}
            cases = [name for name, g in graphs.items() if write_graph(g, work / name)]
            for name, line in check(options.program, work, cases).items():
                kind = "pass" if line == "pass" else line.split()[0]
                results[kind] += 1
                if kind == "pass":
                    continue
                found = reduce_to_nodes(options.program, graphs[name], work / f"nodes_of_{name}")
                # Once of each kind is enough.
                key = re.sub(r"-?[\d.]+(e-?\d+)?", "#", (found or [line])[0])
                if key in seen and kind != "FAIL":
                    continue
                seen.add(key)
                print(f"{name} (set {graphs[name].opset}): {line}", *[f"    {each}" for each in found], sep="\n")
                if not found:
                    print(*[f"    {text_of(node, graphs[name].values)}" for node in graphs[name].nodes], sep="\n")
                if options.keep:
                    shutil.copytree(work / name, pathlib.Path(options.keep) / name, dirs_exist_ok=True)
        print(f"-- to seed {seeds[-1]}: {dict(results)}", flush=True)
    nodes = sum(count for name, count in counts.items() if not name.startswith("refused"))
    unused = [name for name in OPERATORS if not counts[name]]
    print(f"{nodes} nodes of {len(OPERATORS) - len(unused)} operators" + (f"; none of {', '.join(unused)}" if unused else ""))
    return 0 if set(results) <= {"pass"} else 1


if __name__ == "__main__":
    sys.exit(main())

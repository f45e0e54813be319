#!/usr/bin/env python3
"""Prints the lines of docs/reference/devices.md's table ("Reports") for files that clnet-info --report wrote: report_rows.py FILE..."""
import json
import sys

ITEMS = ("matmul-1024", "matmul-1024-f16", "conv-64-64-56-b16-forward", "sum-64m", "cnn-train-b128", "resnet18-infer-b1")


def row(path):
    with open(path) as file:
        report = json.load(file)
    if report.get("report") != 1:
        raise SystemExit(f"{path}: is no report of version 1")
    test, bench = report.get("self_test", {}), report.get("bench", {})
    times = {item["name"]: item.get("median_ms") for item in bench.get("items", [])}
    found = f"{len(test['broken'])} of {test['run']}" if "broken" in test else test.get("error", "not run")
    cells = [report["device"]["name"], report["device"]["driver_version"], report["clnet"], found]
    cells += ["–" if value is None else f"{value / 1e3:.1f}" if value >= 1e3 else f"{value / 1e3:.2g}" for value in (bench.get("gflops_in_registers"), bench.get("gbytes_per_second_copied"))]
    cells += ["–" if times.get(name) is None else f"{times[name]:.3f}" for name in ITEMS]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    print("\n".join(map(row, sys.argv[1:])))

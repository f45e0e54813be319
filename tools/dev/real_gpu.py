#!/usr/bin/env python3
"""Reads what real_gpu.sh measured. Needs nothing but Python 3.9.

    real_gpu.py self-test JSON           what clnet-info --self-test found, in a few lines
    real_gpu.py ratios FOLDER            clnet-bench's times beside PyTorch's, as a table
    real_gpu.py tune LOG TABLE           how much the choice without measuring loses, of clnet-bench --tune with CLNET_DEBUG=1
    real_gpu.py kernels TRACE MODEL      launches of a trace beside the table of model_time.py
    real_gpu.py programs CACHE FOLDER    the driver's programs out of clnet's cache, and their registers where there is ptxas
"""
import collections
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys


def self_test(path):
    text = pathlib.Path(path).read_text()
    try:
        found = json.loads(text)
    except ValueError:
        print(f"  no result; it ended with: {(text.strip().splitlines() or ['nothing'])[-1][:150]}")
        return
    print(f"  {found['run']} of {found['checks']} checks in {found['seconds']:.0f} s; {len(found['broken'])} broken, {len(found['slow'])} slow")
    for fault in found["broken"][:20]:
        print(f"  broken: {fault['what']}: {fault['reason']}"[:170])
    for line in found["slow"][:6]:
        print(f"  slow: {line}"[:170])


# ---- clnet beside PyTorch


def clnet_times(folder, name):
    """Medians by item of bench-NAME-*.json; the last one counts."""
    times = {}
    for path in sorted(folder.glob(f"bench-{name}-*.json")):
        times.update((entry["name"], entry["median_ms"]) for entry in json.loads(path.read_text())["items"])
    return times


def ratios(folder):
    folder = pathlib.Path(folder)
    ours = {"f32": clnet_times(folder, "items"), "tf32": clnet_times(folder, "tf32")}
    theirs, problems = {"f32": {}, "tf32": {}}, []
    path = folder / "pytorch.jsonl"
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:  # the last line of a process that was ended
            continue
        if "problem" in entry:
            problems.append(f"PyTorch, {entry['name']} {entry['mode']}: {entry['problem']}")
        else:
            theirs[entry["mode"]][entry["name"]] = entry["median_ms"]
    print("| item | clnet ms | PyTorch ms | ratio | clnet TF32 | PyTorch TF32 | ratio |\n|---|---|---|---|---|---|---|")
    known = []
    for name in dict.fromkeys([*ours["f32"], *theirs["f32"]]):
        cells = []
        for mode in ours:
            a, b = ours[mode].get(name), theirs[mode].get(name)
            cells += ["–" if value is None else f"{value:.3f}" for value in (a, b)] + [f"{b / a:.2f}" if a and b else "–"]
            if a and b and mode == "f32":
                known.append(b / a)
        print(f"| {name} | {' | '.join(cells)} |")
    if known:
        print(f"\nPyTorch's time by clnet's (above 1: clnet is faster), {len(known)} items: median {statistics.median(known):.2f}, "
              f"geometric mean {math.exp(statistics.fmean(map(math.log, known))):.2f}, {min(known):.2f} to {max(known):.2f}")
    print("\n".join(problem[:180] for problem in problems))


# ---- choices


def tune(log, table):
    """The first solver that a problem's line names is the one that is taken where nothing was measured."""
    problems = collections.defaultdict(dict)
    for line in pathlib.Path(log).read_text(errors="replace").splitlines():
        if found := re.match(r"clnet: tuning: (.*): ([\d.]+) us by (.*)", line):
            problems[found[1]].setdefault(found[3], float(found[2]))
    lines, losses = ["| problem | taken without measuring | us | fastest | us | slower by |", "|---|---|---|---|---|---|"], []
    for problem, times in problems.items():
        taken, fastest = next(iter(times)), min(times, key=times.get)
        loss = 100 * (times[taken] / max(times[fastest], 1e-3) - 1)
        lines.append(f"| {problem} | {taken} | {times[taken]:.1f} | {fastest} | {times[fastest]:.1f} | {loss:.0f} % |")
        if loss > 5:
            short = re.sub(r" .* of ", " of ", problem)
            losses.append((loss, f"  {loss:.0f} %: {short}: {taken} {times[taken]:.1f} us, {fastest} {times[fastest]:.1f} us"))
        lines += [f"| | {solver} | {time:.1f} | | | |" for solver, time in sorted(times.items(), key=lambda entry: entry[1])]
    pathlib.Path(table).write_text("\n".join(lines) + "\n")
    print(f"tune: {sum(map(len, problems.values()))} solvers of {len(problems)} problems were timed; "
          f"the choice without measuring loses over 5 % in {len(losses)}")
    for _, line in sorted(losses, reverse=True)[:10]:
        print(line)


# ---- launches


def modelled(path):
    """The first line, and of each kernel and shape how often one run launches it, and its microseconds in all."""
    title, _, *rows = pathlib.Path(path).read_text().splitlines()
    expected = collections.defaultdict(lambda: [0, 0.0])
    for row in rows:
        # us, %, count, us each, bound by, [of peak], per unit, kernel, detail
        if found := re.match(r" *([\d.]+) +[\d.]+ +(\d+) +[\d.]+ \w+ +(?:\d+ % +)?[\d.]+  (\S+) ?(.*)$", row):
            entry = expected[found[3], re.sub(r"^(forward|data|weights) ", "", found[4])]
            entry[0] += int(found[2])
            entry[1] += float(found[1])
    return title, expected


def kernels(trace, model):
    title, expected = modelled(model)
    events = [event for event in json.loads(pathlib.Path(trace).read_text())["traceEvents"] if event["ph"] == "X" and event["cat"] == "device"]
    launches = collections.defaultdict(list)
    for event in events:
        launches[event["name"], event["args"].get("detail", "")].append(event["dur"])
    rows, missing = [], []
    for key, (count, us) in expected.items():
        # Of the later half, in which nothing is warmed up any more.
        times = launches.pop(key, [])
        (rows if times else missing).append((statistics.fmean(times[len(times) // 2:]) * count if times else 0.0, us, count, " ".join(key)))
    late = sorted(events, key=lambda event: event["ts"])[len(events) // 2:]
    span = max(event["ts"] + event["dur"] for event in late) - late[0]["ts"] if late else 0
    busy = 100 * sum(event["dur"] for event in late) / span if span else 0
    took, wanted, lost = (sum(row[place] for row in part) / 1e3 for part, place in ((rows, 0), (rows, 1), (missing, 1)))
    print(f"{title.split(':')[0]}: kernels {took:.2f} ms, modelled {wanted:.2f}; {lost:.2f} ms modelled in {len(missing)} kinds of launches that "
          f"were not made; the device was busy {busy:.0f} % of the time, with profiling")
    print(f"{'us':>9} {'model':>9} {'ratio':>6} {'count':>5}  kernel")
    for time, us, count, key in sorted(rows, reverse=True) + sorted(missing, reverse=True):
        print(f"{time:9.1f} {us:9.1f} {time / us if us else 0:6.2f} {count:5}  {key}")
    print("launches that the model has not, us each:")
    for key, times in sorted(launches.items(), key=lambda entry: -sum(entry[1]))[:40]:
        print(f"{statistics.median(times):9.1f} {'':16} {len(times):5}  {' '.join(key)}")


# ---- programs


def registers(ptxas, path, target):
    """Registers, spilled bytes and name of each kernel of a program in PTX."""
    said = subprocess.run([ptxas, f"-arch={target}", "-v", path, "-o", os.devnull], capture_output=True, text=True).stderr
    for kernel, rest in re.findall(r"Compiling entry function '(\w+)'(.*?Used \d+ registers)", said, re.S):
        spilled = re.search(r"(\d+) bytes spill stores", rest)
        yield int(re.findall(r"Used (\d+) registers", rest)[-1]), int(spilled[1]) if spilled else 0, kernel


def programs(cache, folder):
    folder = pathlib.Path(folder)
    nearby = pathlib.Path("/usr/local/cuda/bin/ptxas")
    ptxas = shutil.which("ptxas") or (nearby if nearby.exists() else None)
    kinds, found = collections.Counter(), []
    for path in sorted(pathlib.Path(cache).glob("*.clnet-program")):
        data = path.read_bytes()
        key_size, size = struct.unpack("<QQ", data[16:32])  # lib/cl/program_cache.cpp
        source, binary = data[32:32 + key_size], data[32 + key_size:32 + key_size + size]
        name = (re.findall(rb"kernel[^;{]*?void (\w+)\(", source) or [b"program"])[-1].decode() + "-" + path.stem[:8]
        (folder / f"{name}.cl").write_bytes(source)
        target = re.search(rb"^\.target +(sm_\w+)", binary, re.M)
        kinds["PTX" if target else "ELF" if binary.startswith(b"\x7fELF") else "another form"] += 1
        file = folder / (name + (".ptx" if target else ".bin"))
        file.write_bytes(binary.rstrip(b"\0") if target else binary)
        if target and ptxas:
            found += [(*entry, file.name) for entry in registers(ptxas, file, target[1].decode())]
    print(f"the driver's programs: {', '.join(f'{count} in {kind}' for kind, count in kinds.items()) or 'none was kept'}")
    if found:
        print(f"  ptxas: at most {max(found)[0]} registers ({max(found)[2]}); {sum(entry[1] > 0 for entry in found)} of {len(found)} kernels spill")
        (folder / "registers.txt").write_text("".join(f"{count:4} {spilled:6} {name} {file}\n" for count, spilled, name, file in sorted(found)))


COMMANDS = {"self-test": self_test, "ratios": ratios, "tune": tune, "kernels": kernels, "programs": programs}

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
        raise SystemExit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])

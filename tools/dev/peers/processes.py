"""Runs clnet-bench and the peers, each item in a process of its own: the peers' environment, and what the processes answer."""
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

from peers.items import EXPORTED, parse

# Threads that spin while they wait, and threads that sleep; the better of both counts.
POLICIES = {}, {"OMP_WAIT_POLICY": "passive"}
# What keeps the peers to AVX2 on a CPU with AVX-512: MKL, OpenBLAS, oneDNN (OpenVINO has one, too) and PyTorch's own kernels.
AVX2 = {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "OPENBLAS_CORETYPE": "Haswell", "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
ANSWER = "answer of the worker: "


def best_environment(threads):
    env = {k: v for k, v in os.environ.items() if not re.match(r"(OPENBLAS|OMP|GOMP|MKL|KMP)_", k)}
    openmp = f"/usr/lib/{platform.machine()}-linux-gnu/openblas-openmp"
    if os.path.isdir(openmp):
        env["LD_LIBRARY_PATH"] = openmp + ":" + env.get("LD_LIBRARY_PATH", "")
    env.update(OMP_NUM_THREADS=str(threads), MALLOC_MMAP_THRESHOLD_="4294967296", MALLOC_TRIM_THRESHOLD_="4294967296",
               MALLOC_TOP_PAD_="268435456")
    # torch.compile's helpers would stand beside what is measured.
    env["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    return env


def measure_clnet(bench, name, seconds):
    """[median, best] in ms"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        subprocess.run([bench, name, "--seconds", str(seconds), "--json", path], check=True, stdout=subprocess.DEVNULL)
        with open(path) as file:
            result = json.load(file)["items"][0]
    return [result["median_ms"], result["best_ms"]]


def first_line(problem):
    """Of an exception, short enough for a line below a table."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0][:160] if lines else ''}".rstrip(": ")


def ask(script, task, threads, *arguments, policy=POLICIES[0]):
    """What worker() answers in a process of its own: {item: ...}, each a result or {"problem": text}."""
    done = subprocess.run([sys.executable, script, "--worker", task, "--threads", str(threads), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**best_environment(threads), **policy}, text=True, errors="replace")
    for line in done.stdout.splitlines():
        if line.startswith(ANSWER):
            return json.loads(line[len(ANSWER):])
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return {"problem": f"its process ended with {done.returncode}: {last[:160]}"}


def worker(task, names, seconds, threads, folder):
    """The other side of ask(): starts a peer, exports models, or measures. Prints one line of JSON."""
    answer = {}
    try:
        if task.startswith("start-"):
            answer = {"version": start(task[len("start-"):])}
        for name in names:
            try:
                answer[name] = perform(task, parse(name), seconds, threads, folder)
            except Exception as problem:
                answer[name] = {"problem": first_line(problem)}
    except Exception as problem:
        answer = {"problem": first_line(problem)}
    print("\n" + ANSWER + json.dumps(answer))


def start(peer):
    if peer in EXPORTED:
        from peers import exported
        return exported.start(peer)
    from peers import pytorch_runs
    return pytorch_runs.start(peer)


def perform(task, item, seconds, threads, folder):
    from peers.timing import best_of, sample
    if task == "export":
        from peers import exported
        exported.export(item, folder)
        return {}
    if task in EXPORTED:
        from peers import exported
        found = exported.runs(task, item, folder, threads)
    else:
        import torch
        from peers import pytorch_runs
        torch.set_num_threads(threads)
        found = pytorch_runs.runs(item, task)
    return {"ms": best_of([sample(run, seconds) for run in found])}


def measure_peer(script, peer, name, seconds, threads, folder, limits):
    """{"ms": [median, best, CPU time]}, or {"problem": text}; folder keeps exported models for the rounds to come. limits: variables that
    keep the peer to less than the CPU has."""
    arguments = ["--seconds", str(seconds), "--models", folder, name]
    if peer in EXPORTED and not os.path.exists(os.path.join(folder, name + ".onnx")):
        done = ask(script, "export", threads, *arguments)
        problem = done.get("problem") or done[name].get("problem")
        if problem:
            return {"problem": problem}
    sides = []
    for policy in POLICIES:
        done = ask(script, peer, threads, *arguments, policy={**limits, **policy})
        side = done if "problem" in done else done[name]
        if "problem" in side:
            return side
        sides.append(side["ms"])
    return {"ms": [min(both) for both in zip(*sides)]}

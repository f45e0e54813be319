#!/usr/bin/env python3
"""Measures training over ranks and over several devices, beside processes that do not communicate and beside PyTorch's DDP.

  tools/dev/compare_ranks.py [--ranks 2] [--rounds 5] [--seconds 3] [--build build] [--json FILE] [item...]

Each rank has one thread, and the whole item: resnet18-train-b8 on two ranks is a batch of 16. In each round all ways run once, in
another order than in the round before, so that other work on the machine meets all of them:

  ranks     mpirun -n RANKS clnet-bench: gradients are added over ranks in each step
  apart     as many clnet-bench at once that do not communicate
  alone     one process; mpi-1 is one rank under mpirun
  ddp       PyTorch's DistributedDataParallel over gloo, if the Python that runs this has torch; the faster layout counts
  devices   one process that trains on PoCL's pthread device (one thread) and its basic device, in place of the first alone

A ratio is of samples per second, the median over rounds, quartiles in brackets. Needs Open MPI, and PoCL for `devices`.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ITEMS = "resnet18-train-b8", "cnn-train-b64", "char-gpt-train-b32"
LAUNCHER = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
# What is shown: its name, and the ways whose rates it is the ratio of, each by what one process does.
RATIOS = (("ranks / ddp", "ranks", "ddp"), ("ranks / apart", "ranks", "apart"), ("mpi-1 / alone", "mpi-1", "alone"),
          ("two devices / one", "devices", "device"))
# They would change what a peer or a rank does.
CLEARED = "OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "GOMP_CPU_AFFINITY", "CLNET_MPI"


class Failed(Exception):
    pass


def environment(**more):
    env = {key: value for key, value in os.environ.items() if key not in CLEARED}
    return {**env, "POCL_MAX_PTHREAD_COUNT": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **more}


def output_of(command, env):
    done = subprocess.run([str(word) for word in command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Failed(f"{' '.join(map(str, command[:6]))} ... ended with {done.returncode}: {last}")
    return done.stdout


class Bench:
    def __init__(self, build, ranks, seconds, folder):
        self.program, self.ranks, self.seconds, self.folder = build / "tools/clnet-bench", ranks, seconds, folder

    def step(self, item, ranks, **env):
        """Milliseconds of a step; of several processes apart the mean."""
        # Each process writes a file of its own: ranks of one job only rank 0.
        line = f'exec "$0" {item} --seconds {self.seconds} --json "{self.folder}/${{OMPI_COMM_WORLD_RANK-0}}.json"'
        for old in self.folder.glob("*.json"):
            old.unlink()
        launcher = [*LAUNCHER, "-n", ranks] if ranks else []
        output_of([*launcher, "sh", "-c", line, self.program], environment(**env))
        return statistics.mean(json.loads(path.read_text())["items"][0]["median_ms"] for path in self.folder.glob("*.json"))

    def replicas(self, item):
        path = self.folder / "replicas.json"
        output_of([self.program, item, "--seconds", self.seconds, "--replicas", "0:0,0:1", "--json", path],
                  environment(POCL_DEVICES="pthread basic"))
        found = json.loads(path.read_text())["items"][0]
        return {"device": 1 / found["alone"], "devices": 1 / found["together"]}

    def ddp(self, item):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        def started(rank):
            env = environment(RANK=str(rank), WORLD_SIZE=str(self.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
                              PYTHONPATH=str(ROOT / "tools/dev"))
            return subprocess.Popen([sys.executable, "-B", ROOT / "tools/dev/peers/ddp_runs.py", item, str(self.seconds)], env=env,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes = [started(rank) for rank in range(self.ranks)]
        texts = [process.communicate() for process in processes]
        for process, (_, problem) in zip(processes, texts):
            if process.returncode:
                raise Failed(f"PyTorch: {(problem.strip().splitlines() or ['it said nothing'])[-1]}")
        return next(float(line.split()[1]) for text, _ in texts for line in text.splitlines() if line.startswith("step "))


def spread(values):
    if len(values) < 2:
        return f"{values[0]:.2f}"
    first, middle, last = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({first:.2f} to {last:.2f})"


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch.distributed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("items", nargs="*", default=ITEMS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path, help="writes ms per step of every way and round; samples/s of devices inverted")
    options = parser.parse_args()
    everything = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.build.resolve(), options.ranks, options.seconds, pathlib.Path(folder))
        ways = [lambda item: {"ranks": bench.step(item, options.ranks)}, lambda item: {"apart": bench.step(item, options.ranks, CLNET_MPI="off")},
                lambda item: {"alone": bench.step(item, 0)}, lambda item: {"mpi-1": bench.step(item, 1)}]
        if has_torch():
            ways.append(lambda item: {"ddp": bench.ddp(item)})
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before; {options.ranks} ranks of one thread, {options.rounds} rounds")
        for item in options.items:
            of_item = [*ways] + ([bench.replicas] if not item.startswith("char-gpt") else [])
            rounds = everything[item] = []
            for number in range(options.rounds):
                times = {}
                for way in of_item[number % len(of_item):] + of_item[:number % len(of_item)]:
                    times |= way(item)
                rounds.append(times)
            print(item, ", ".join(f"{way} {statistics.median(times[way] for times in rounds):.4g} ms"
                                  for way in ("ranks", "apart", "alone", "mpi-1", "ddp") if way in rounds[0]))
            for name, one, other in RATIOS:
                if one in rounds[0] and other in rounds[0]:
                    print(f"    {name:20} {spread([times[other] / times[one] for times in rounds])}", flush=True)
        print(f"load {os.getloadavg()[0]:.1f} after")
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except (Failed, OSError) as failure:
        print(f"compare_ranks: {failure}", file=sys.stderr)
        sys.exit(1)

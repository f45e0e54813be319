#!/usr/bin/env python3
"""Kills or stops one of four ranks of clnet-train at a random moment, and looks at how the job ends and goes on.
   tests/dist/random_ends.py openmpi|mpich CLNET_TRAIN SEED COUNT
The job has to end with a fault within CLNET_DIST_TIMEOUT (8 unless set) and two seconds for the launcher. Of a stopped rank the
others name rank, host and collective; of a killed one the launcher tells. The checkpoint is whole, and no process is left. Then
--resume has to end with the weights and the log of a job that nobody disturbed, to the bit, and with no temporary file.
Ends with 77 where that MPI is not installed, or clnet was built without its module."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from few_images import write_images

RANKS = 4
DEADLINE = int(os.environ.get("CLNET_DIST_TIMEOUT", "8"))
LAUNCHERS_TIME = 2


class Fault(Exception):
    pass


def require(holds, what):
    if not holds:
        raise Fault(what)


def require_whole(path):
    """A file in the format of safetensors has all bytes that its header tells of."""
    content = path.read_bytes()
    require(len(content) >= 8, f"{path.name} has {len(content)} bytes")
    size, = struct.unpack("<Q", content[:8])
    require(8 + size <= len(content), f"{path.name} ends within its header")
    header = json.loads(content[8:8 + size])
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    require(8 + size + max(ends) == len(content), f"{path.name} is half-written")


def lines_without_times(log):
    lines = []
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        lines.append({key: value for key, value in entry.items() if key not in ("seconds", "images_per_second")})
    return lines


class Job:
    """A training in a folder of its own: every process of the job has its name in arguments or environment."""

    def __init__(self, mpi, program, folder, data):
        self.mpi, self.folder = mpi, folder
        folder.mkdir()
        (folder / "tmp").mkdir()
        self.run, self.weights, self.log = folder / "run", folder / "weights.safetensors", folder / "log.jsonl"
        self.command = [f"mpirun.{mpi}"]
        if mpi == "openmpi":
            self.command += ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
        self.command += ["-n", str(RANKS), program, "--data", str(data), "--model", "mlp", "--batch-size", "20", "--epochs", "25",
                         "--checkpoint", str(self.run), "--checkpoint-steps", "3", "--log", str(self.log),
                         "--save", str(self.weights)]
        self.environment = dict(os.environ, CLNET_DIST_TIMEOUT=str(DEADLINE), POCL_MAX_PTHREAD_COUNT="1",
                                TMPDIR=str(folder / "tmp"), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def start(self, *more):
        self.output = self.folder / "output"
        with open(self.output, "wb") as out:
            return subprocess.Popen(self.command + list(more), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    env=self.environment, start_new_session=True)

    def finish(self, *more):
        """Runs it to its end, which has to be a good one."""
        launcher = self.start(*more)
        code = ended_with(launcher, 120)
        if code is None:
            os.killpg(launcher.pid, signal.SIGKILL)
        require(code == 0, "the job did not end" if code is None else f"the job ended with {code}")

    def processes(self):
        """What the launcher's children and theirs are: number, environment."""
        found = []
        for process in pathlib.Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) == os.getpid():
                continue
            try:
                environment = (process / "environ").read_bytes().split(b"\0")
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if f"TMPDIR={self.folder}/tmp".encode() in environment and words:
                found.append((int(process.name), environment, words))
        return found

    def ranks(self):
        """The numbers of processes by rank."""
        found = {}
        for process, environment, words in self.processes():
            rank = [word.split(b"=")[1] for word in environment if word.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK="))]
            if rank and pathlib.Path(words.split(b"\0")[0].decode()).name == "clnet-train":
                found[int(rank[0])] = process
        return found

    def saw_training(self):
        return self.log.exists() and self.log.stat().st_size > 0


def ended_with(launcher, longest):
    """The code with which it ends; None where it takes longer."""
    try:
        return launcher.wait(longest)
    except subprocess.TimeoutExpired:
        return None


def disturb(job, rank, how, moment):
    """Whether the rank was still at work then."""
    launcher = job.start()
    time.sleep(moment)
    process = None
    while process is None and launcher.poll() is None:
        process = job.ranks().get(rank)
    if process is None:
        return False
    trained = job.saw_training()
    began = time.monotonic()
    os.kill(process, how)
    code = ended_with(launcher, DEADLINE + LAUNCHERS_TIME)
    took = time.monotonic() - began
    if code is None and set(job.ranks()) == {rank}:
        # The others had no more to do with it, and have ended well: the launcher alone waits.
        os.kill(process, signal.SIGCONT)
        code = ended_with(launcher, LAUNCHERS_TIME)
    if code is None:
        os.killpg(launcher.pid, signal.SIGKILL)
        raise Fault(f"the job did not end within {took:.1f} s")
    if code == 0:
        return False
    text = job.output.read_text(errors="replace")
    if how == signal.SIGSTOP and trained:
        named = re.findall(rf"rank {rank} on {re.escape(socket.gethostname())} has been silent for \d+ s, last heard "
                           r"(?:in collective \d+, \w+ of \d+|before)[^;\n]*; rank (\d) on \S+ is in collective \d+, ", text)
        require(set(named) == {str(other) for other in range(RANKS) if other != rank},
                f"the ranks {sorted(set(named))} name the lost one")
    if how == signal.SIGKILL:
        told = r"exited on signal 9 \(Killed\)" if job.mpi == "openmpi" else r"KILLED BY SIGNAL: 9|EXIT CODE: 9"
        require(re.search(told, text), "the launcher does not tell of the killed one")
    for _ in range(20):
        left = job.processes()
        if not left:
            break
        time.sleep(0.1)
    require(not left, f"processes are left: {[words for _, _, words in left]}")
    return True


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    mpi, program, seed, count = sys.argv[1], pathlib.Path(sys.argv[2]).absolute(), sys.argv[3], int(sys.argv[4])
    if not shutil.which(f"mpirun.{mpi}"):
        print(f"skipped: mpirun.{mpi} is not installed (Debian's openmpi-bin, mpich)")
        sys.exit(77)
    if not (program.parent.parent / "clnet" / f"clnet-mpi-{mpi}.so").exists():
        print(f"skipped: clnet was built without clnet-mpi-{mpi}.so (Debian's libopenmpi-dev, libmpich-dev)")
        sys.exit(77)
    work = pathlib.Path(tempfile.mkdtemp())
    try:
        write_images(work / "data", 400, 40)
        whole = Job(mpi, str(program), work / "whole", work / "data")
        # The first one may compile.
        whole.finish()
        shutil.rmtree(whole.run)
        began = time.monotonic()
        whole.finish()
        usual = time.monotonic() - began
        wanted, wanted_log = whole.weights.read_bytes(), lines_without_times(whole.log)
        faults = 0
        choose = random.Random(seed)
        for number in range(count):
            for attempt in range(10):
                rank, how = choose.randrange(RANKS), choose.choice([signal.SIGKILL, signal.SIGSTOP])
                moment = choose.uniform(0, usual)
                what = f"{mpi}, seed {seed}, {number + 1} of {count}: {how.name} for rank {rank} after {moment:.2f} s"
                job = Job(mpi, str(program), work / f"job-{number}-{attempt}", work / "data")
                try:
                    began = time.monotonic()
                    if not disturb(job, rank, how, moment):
                        continue
                    ended = time.monotonic() - began
                    if (job.run / "checkpoint.safetensors").exists():
                        require_whole(job.run / "checkpoint.safetensors")
                    steps = len(job.log.read_text().splitlines()) if job.log.exists() else 0
                    job.finish("--resume")
                    require(job.weights.read_bytes() == wanted, "resumed, it has other weights")
                    require(lines_without_times(job.log) == wanted_log, "resumed, it has another log")
                    left = [str(path) for path in job.folder.rglob("*.tmp*")]
                    require(not left, f"files are left: {left}")
                    print(f"{what}: ended after {ended:.1f} s in line {steps} of the log, and resumed", flush=True)
                except Fault as fault:
                    faults += 1
                    print(f"{what}: failed: {fault}\n{job.output.read_text(errors='replace')}", flush=True)
                    for process, _, _ in job.processes():
                        os.kill(process, signal.SIGKILL)
                shutil.rmtree(job.folder)
                break
            else:
                raise SystemExit("no job was at work for long enough")
        sys.exit(1 if faults else 0)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()

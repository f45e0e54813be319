"""What clnet takes for an item: solvers with their configurations, and the parts of kernels that its programs are made of."""
import os
import re
import subprocess
import tempfile

from kernel_text import NAME, digest
from peers.items import parse

# What lets the user decide instead of clnet: an entry of the ledger is of what is shipped.
DECIDING = ("CLNET_SOLVER", "CLNET_VECTOR_WIDTH", "CLNET_KERNEL_DIR", "CLNET_FUSION", "CLNET_EAGER", "CLNET_MEMORY_SHARING", "CLNET_TF32",
            "CLNET_WINOGRAD", "CLNET_NONTEMPORAL_STORES_FROM", "CLNET_QUIRKS", "CLNET_POISON", "CLNET_VERIFY", "CLNET_LAUNCH_BATCHES", "CLNET_AWAKE",
            "CLNET_DRIVER_HABITS", "POCL_KERNELLIB_NAME")
SOLVER = re.compile(r"clnet: (\w+): solver (\w+(?:\{[^}]*\})?)(?:,|;|$)")
SOURCE = re.compile(r"clnet: source of (.+):$")
# What fills the inputs before the first step.
FILLING = re.compile(r"(fused_)?randn?_")
NUMBERED = re.compile(r" *\d+ \| (.*)")


def log_of(bench, name, variables=None):
    """What a process says that makes the item's first steps, and nothing else; variables are of its environment besides."""
    # Chains put kernels together that are in the log one by one, too.
    environment = {**os.environ, **(variables or {}), "CLNET_DEBUG": "4", "CLNET_LAUNCH_BATCHES": "off"}
    # Into a file: threads that write long texts into a pipe at the same time would mix them.
    with tempfile.TemporaryFile("a+", errors="replace") as file:
        done = subprocess.run([bench, "--programs", name], stdout=subprocess.DEVNULL, stderr=file, env=environment)
        file.seek(0)
        log = file.read()
    if done.returncode:
        last = (log.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"{bench} --programs {name} ended with {done.returncode}: {last[:160]}")
    return log


def programs_of(log):
    """(title, lines) of each program in a log."""
    programs, lines = [], None
    for line in log.split("\n"):
        if found := SOURCE.match(line):
            lines = []
            programs.append((found[1], lines))
        elif lines is not None and (found := NUMBERED.match(line)):
            lines.append(found[1])
        else:
            lines = None
    return programs


def parts_of(title, lines, kernels):
    """The parts of kernels/ that a program is made of: its file, and the headers' definitions that what the host wrote names."""
    if title + ".cl" in kernels.texts:
        first = next((i for i, line in enumerate(lines) if not line.startswith("#define ")), len(lines))
        own, parts = lines[:first], {title + ".cl"}
    else:
        own, parts = [line for line in lines if line not in kernels.header_lines()], set()
    return parts | set(NAME.findall("\n".join(own))) & kernels.definitions()


def taken_of(name, log, kernels):
    """{"solvers": [op:solver{configuration}...], "kernels": {part: hash}}"""
    solvers = {f"{found[1]}:{found[2]}" for line in log.split("\n") if (found := SOLVER.match(line))}
    parts = set()
    item = parse(name)
    for title, lines in programs_of(log):
        if not FILLING.match(title) or item and item.kind == "random":
            parts |= parts_of(title, lines, kernels)
    if not parts:
        raise RuntimeError("its log names no program")
    return {"solvers": sorted(solvers), "kernels": {part: kernels.hash_of(part) for part in sorted(parts)}}


def hash_of(taken):
    """One hash of what was taken, without the names of files and functions."""
    return digest("\n".join(taken["solvers"] + sorted(set(taken["kernels"].values()))))

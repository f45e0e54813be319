#!/usr/bin/env python3
"""Names before and after: reads lib/base/renames.txt, and compares recorded texts with older ones by it.

  tools/dev/renames.py check REF    takes tests/golden, the recorded limits and the ledger as they were in a git revision, gives what
                                    they name its new names, and compares with the files of the working tree; ends with 1 if one differs
"""
import argparse
import copy
import json
import pathlib
import re
import subprocess
import sys

import cpu_loops
import ledger
import offline_limits
from peers.taken import hash_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = "lib/base/renames.txt"
RECORDED = ("tests/golden", "tools/dev/offline_limits.txt", "tools/dev/cpu_limits.txt", "bench/ledger")
FIELDS = {"solver": 3, "variable": 2, "value": 3, "kernel": 2, "macro": 2, "file": 2}
SOLVER = re.compile(r"(\w+):(\w+)(.*)")


class Renames:
    def __init__(self, text):
        self.solvers, self.variables, self.values, self.kernels, self.macros, self.files = {}, {}, {}, {}, {}, {}
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if FIELDS.get(words[0]) != len(words) - 1:
                raise ValueError(f"{TABLE}: line {number} is no name before and after")
            table = getattr(self, words[0] + "s")
            key = tuple(words[1:-1]) if len(words) == 4 else words[1]
            if key in table:
                raise ValueError(f"{TABLE}: line {number}: {words[-2]} has two new names")
            table[key] = words[-1]
        self.names = {pathlib.PurePath(old).name: pathlib.PurePath(new).name for old, new in self.files.items()}
        plain = {old: new for old, new in self.kernels.items() if "/" not in old}
        self.words = {**plain, **self.macros, **self.variables, **self.names}
        self.pattern = re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, sorted(self.words, key=len, reverse=True))) + r")(?!\w|\.clh)")

    @staticmethod
    def read(path=ROOT / TABLE):
        return Renames(path.read_text())

    def solver(self, text):
        """op:solver{configuration} with the solver's new name."""
        found = SOLVER.fullmatch(text)
        return f"{found[1]}:{self.solvers.get((found[1], found[2]), found[2])}{found[3]}" if found else text

    def text(self, text):
        """A kernel's text with new names."""
        return self.pattern.sub(lambda found: self.words[found[0]], text)

    def kind(self, name, device):
        """A row of recorded limits: a kernel with its sizes. Of kernels of several files it is not the other device's."""
        plain = re.match(r"\w*", name)[0]
        other = {"cpu": "gpu", "gpu": "cpu"}[device]
        scoped = {old.split("/")[1]: new for old, new in self.kernels.items() if "/" in old and f"_{other}.cl/" not in old}
        return self.kernels.get(plain, scoped.get(plain, plain)) + name[len(plain):]

    def cells(self, cells, device):
        return {(self.kind(name, device), column): cell for (name, column), cell in cells.items()}

    def gpu_limits(self, text):
        limits = offline_limits.Limits.parse(text)
        limits.kernels, limits.others = self.cells(limits.kernels, "gpu"), self.cells(limits.others, "gpu")
        return limits.text()

    def cpu_limits(self, text):
        limits = cpu_loops.Limits.parse(text)
        limits.kernels = self.cells(limits.kernels, "cpu")
        return limits.text()

    def ledger(self, text):
        """The same measurements. What was taken has new names, so its hash is another one."""
        whole, hashes = copy.deepcopy(json.loads(text)), {}
        taken = whole["taken"]
        whole["taken"] = {}
        for old, what in taken.items():
            new = {"solvers": sorted(map(self.solver, what["solvers"])),
                   "kernels": dict(sorted((self.names.get(part, self.words.get(part, part)), hash) for part, hash in what["kernels"].items()))}
            hashes[old] = hash_of(new)
            whole["taken"][hashes[old]] = new
        for entry in whole["entries"]:
            entry["hash"] = hashes.get(entry["hash"])
        return ledger.text_of(whole)

    def recorded(self, path, text):
        """(path, text) of a recorded file with new names."""
        if path.startswith("bench/ledger/"):
            return path, self.ledger(text)
        if path == "tools/dev/offline_limits.txt":
            return path, self.gpu_limits(text)
        if path == "tools/dev/cpu_limits.txt":
            return path, self.cpu_limits(text)
        return self.files.get(path, path), self.text(text)


def git(*arguments):
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout


def differences(old, present):
    """Lines about files that are not what the names before and after make of the old ones."""
    for path in sorted(set(old) | set(present)):
        if path not in present:
            yield f"{path}: is missing"
        elif path not in old:
            yield f"{path}: is new"
        elif old[path] != present[path]:
            before, after = old[path].splitlines(), present[path].splitlines()
            at = next((i for i, (a, b) in enumerate(zip(before, after)) if a != b), min(len(before), len(after)))
            yield f"{path}:{at + 1}: {(after[at:] or ['ends'])[0][:160]}; by {TABLE} {(before[at:] or ['it ends'])[0][:160]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check").add_argument("ref", metavar="REF")
    ref = parser.parse_args().ref
    renames = Renames.read()
    paths = git("ls-tree", "-r", "--name-only", ref, *RECORDED).splitlines()
    old = dict(renames.recorded(path, git("show", f"{ref}:{path}")) for path in paths)
    present = {path: (ROOT / path).read_text() for path in git("ls-files", *RECORDED).splitlines()}
    wrong = list(differences(old, present))
    for line in wrong:
        print(line)
    print(f"renames: {len(old)} files of {ref} by {TABLE}, {len(wrong)} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

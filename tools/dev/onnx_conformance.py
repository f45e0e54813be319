#!/usr/bin/env python3
"""Runs the conformance cases of ONNX's releases with clnet-run, and compares what passes with tests/onnx/conformance.txt.

  tools/dev/onnx_conformance.py [--build DIR] [--cache DIR] [RELEASE...]   these releases, else all of the list

Wheels come from PyPI and stay in the cache folder. Each surprise is a line: a case that must pass and does not, one that must not and
does, a number of cases that is another. Ends with 0 where there is none.
"""
import argparse
import array
import fnmatch
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tests/onnx/conformance.txt"
DATA = "onnx/backend/test/data/"


def read_list(text):
    """The releases {name: {folder: cases}}, and [(releases or None, pattern, reason, must_fail)] of what need not pass."""
    releases, rules, reason, only, must = {}, [], None, None, True
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[0] == "release":
            releases[words[1]] = {folder: int(count) for folder, count in (word.split("=") for word in words[2:])}
        elif words[0] in ("reason", "either"):
            found = re.fullmatch(r"\w+ (?:\[([\d. ]+)\] )?(.+)", line)
            only, reason, must = (tuple(found[1].split()) if found[1] else None), found[2], words[0] == "reason"
        elif reason is None:
            raise SystemExit(f"{LIST.name}:{number}: no reason is above {line}")
        else:
            rules += [(only, word, reason, must) for word in words]
    return releases, rules


def surprises(release, counts, results, rules):
    """What differs from the list, a line each. `counts` {folder: cases} are expected, `results` are {folder: {case: line}}."""
    lines, used = [], set()
    mine = [rule for rule in rules if rule[0] is None or release in rule[0]]
    for folder, expected in counts.items():
        cases = results.get(folder, {})
        if len(cases) != expected:
            lines.append(f"{release} {folder}: {len(cases)} cases instead of {expected}")
        for case, line in sorted(cases.items()):
            rule = next((rule for rule in mine if fnmatch.fnmatchcase(case, rule[1])), None)
            if rule:
                used.add(rule)
            if rule and rule[3] and line == "pass":
                lines.append(f"{release} {folder} {case}: passes, though it must not: {rule[2]}")
            elif not rule and line != "pass":
                lines.append(f"{release} {folder} {case}: {line}")
    for rule in mine:
        if rule not in used and rule[0]:
            lines.append(f"{release}: no case is {rule[1]}")
    return lines


def wheel(release, cache):
    folder = cache / release
    for python in ("3.10", "3.12"):
        if not list(folder.glob("*.whl")):
            subprocess.run([sys.executable, "-m", "pip", "download", f"onnx=={release}", "--python-version", python, "--no-deps",
                            "--only-binary", ":all:", "--quiet", "--dest", folder], check=False)
    found = list(folder.glob("*.whl"))
    if not found:
        raise SystemExit(f"onnx {release}: PyPI has no wheel")
    return found[0]


def unpacked(release, cache):
    """The folder of the release's cases. A light network is a file with its outputs: it becomes a case."""
    data = cache / release / DATA
    if not data.exists():
        with zipfile.ZipFile(wheel(release, cache)) as archive:
            archive.extractall(cache / release, [name for name in archive.namelist() if name.startswith(DATA)])
    for model in data.glob("light/*.onnx"):
        case = data / "light_cases" / model.stem
        if (case / "model.onnx").exists():
            continue
        (case / "test_data_set_0").mkdir(parents=True, exist_ok=True)
        for output in model.parent.glob(f"{model.stem}_output_*.pb"):
            shutil.copy(output, case / "test_data_set_0" / output.name.removeprefix(f"{model.stem}_"))
        (case / "test_data_set_0/input_0.pb").write_bytes(ramp([1, 3, 224, 224]))
        shutil.copy(model, case / "model.onnx")
    return data


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def ramp(extents):
    """A TensorProto of f32 from 0 up to 1, as ONNX's runner feeds light networks."""
    count = math.prod(extents)
    raw = array.array("f", (i / count for i in range(count))).tobytes()
    return b"".join(b"\x08" + varint(extent) for extent in extents) + b"\x10\x01" + b"\x4a" + varint(len(raw)) + raw


def run(program, folder):
    """{case: line} of a folder's cases."""
    out = subprocess.run([program, "--check", folder, "--timeout", "300"], stdout=subprocess.PIPE, text=True, check=False).stdout
    lines = dict(line.split(": ", 1) for line in out.splitlines() if ": " in line)
    if not re.search(r"^\d+ passed, \d+ failed, \d+ skipped$", out, re.M):
        lines["the run"] = "did not end"
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "clnet-onnx")
    parser.add_argument("releases", nargs="*")
    options = parser.parse_args()
    releases, rules = read_list(LIST.read_text())
    program, problems = options.build / "tools/clnet-run", []
    for release in options.releases or releases:
        if release not in releases:
            raise SystemExit(f"{LIST.name} has no release {release}")
        data, results = unpacked(release, options.cache), {}
        for folder in releases[release]:
            results[folder] = run(program, data / ("light_cases" if folder == "light" else folder))
        found = surprises(release, releases[release], results, rules)
        passed = sum(line == "pass" for cases in results.values() for line in cases.values())
        print(f"onnx {release}: {passed} of {sum(map(len, results.values()))} cases pass, {len(found)} surprises", flush=True)
        problems += found
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

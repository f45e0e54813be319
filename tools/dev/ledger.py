#!/usr/bin/env python3
"""The ledger of measured ratios: bench/ledger/<class>.json, what is old in it, and the pages that show it.

  tools/dev/ledger.py page [--check]      writes docs/ledger.md and the table in docs/performance.md; --check: fails if they differ
  tools/dev/ledger.py old CLASS           names the items of a class that have entries older than the last change of what clnet takes
  tools/dev/ledger.py gpu SUMMARY CLASS   enters what real_gpu.sh measured beside PyTorch on a GPU, from its summary.txt

tools/dev/compare_peers.py --ledger writes the entries of CPUs. Those of a GPU get the hash of what clnet takes on the null driver's device
of that name (--build names a build with it, which is asked for each item). They get none where there is no such device, or where another
commit than the measured one is checked out. An entry has the ratio of one peer's time by clnet's for one item of clnet-bench on one class
of machines: above 1, clnet is faster. Its hash is of the solvers and configurations that clnet took, and of their kernels' text without
names and comments (kernel_text.py). An entry without a hash counts as old, and so does one whose kernels have changed since. No hash
covers what the host does around the kernels, or the code that it generates: bench/notebook/2026-11-method-and-peers.md says more.
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

from kernel_text import Kernels
from peers.items import KINDS, parse
from peers.table import TITLES, replace_between_marks
from peers.taken import hash_of, log_of, taken_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench/ledger"
FORMAT = 1
# Fields of an entry in the order of the file; an entry has all of the first, those that nobody knows as null.
FIELDS = ("item", "peer", "ratio", "rounds", "date", "commit", "cpu", "versions", "hash")
MORE = ("best", "spread", "clnet_ms", "peer_ms", "seconds", "threads", "note")
NUMBERS = ("ratio", "best", "clnet_ms", "peer_ms", "rounds", "seconds", "threads")
TEXTS = ("commit", "cpu", "note")
MARK = "°"


@dataclasses.dataclass(frozen=True)
class Class:
    model: str  # clnet-info's class, whose models of costs choose
    devices: str
    defaults: str


NOT, IN_PART = "not by measurement: ", "in part by measurement: "
# Columns of the pages. Who ships a class's defaults by measurement on it says so here.
CLASSES = {
    "avx2": Class("cpu-8", "x86-64 CPUs with AVX2, 8 lanes, by PoCL",
                  IN_PART + "products, recurrences and Adam's stores into the caches on a Zen 3"),
    "avx2-on-avx512": Class("cpu-8", "CPUs with AVX-512 that are kept to AVX2, by PoCL", NOT + "as `avx2`"),
    "avx512-half": Class("cpu-16-half", "AVX-512 in two halves (Zen 4), by PoCL", IN_PART + "products and convolutions on a Zen 4"),
    "avx512-full": Class("cpu-16-full", "AVX-512 at full rate, by PoCL", IN_PART + "what `avx512-half` has in common with it"),
    "sse": Class("cpu-4", "x86-64 CPUs without AVX2, 4 lanes, by PoCL", NOT + "those of 8 lanes, by fewer registers"),
    "neon": Class("cpu-4", "64-bit ARM CPUs, 4 lanes, by PoCL", NOT + "as `sse`, and none was at hand"),
    "llvmpipe": Class("other", "Mesa's rusticl on a CPU", NOT + "it is there for tests"),
    "h200": Class("nvidia-sm90", "NVIDIA H200", IN_PART + "`recurrent:gpu` on an H200"),
    "h100": Class("nvidia-sm90", "NVIDIA H100", NOT + "by models and compilers' output"),
}
OTHER = Class("", "", NOT + "by models and compilers' output")

# What docs/performance.md shows: networks first, then layers and operations; strong and weak ones of every kind.
SHOWN = """resnet18-infer-b1 resnet18-infer-b16 resnet50-infer-b1 mobilenetv2-infer-b1-compiled mobilenetv2-infer-b16
mobilenetv2-train-b16 vit-tiny-infer-b1 unet-128-train-b4 char-gpt-train-b32 char-gpt-generate-b1 mlp-infer-b1-compiled
lstm-512-gradient-b32 gru-512-forward-b32 lstm-by-hand-128-t200-b32-compiled
matmul-256 matmul-512 matmul-1024 conv-3-64-224-b16-forward conv-64-64-56-b16-forward conv-64-64-56-b16-backward-weights
conv1x1-256-64-56-b16-forward depthwise-144-56-b16-forward softmax-4096-1000 sum-64m adam-25m""".split()
LEAST_BELOW = 5
LOWEST = 3  # lowest entries of each class that docs/ledger.md names
# What docs/ledger.md says of the lowest ratios: to be mended with the entries.
SLOWER = """- **Single images beside onnxruntime and OpenVINO.** With 8 lanes ViT-Tiny, ResNet-50, MobileNetV2 and a perceptron are slower.
- **Recurrences written by hand.** The host builds and frees thousands of operations in each step. `compile()` spares that on CPUs; on the
  H200 the compiled step is the slowest entry of all.
- **Products with 8 lanes.** Most are below PyTorch's.
- **1x1 convolutions** of many shapes, and the weights' gradients of small depthwise planes.
- **Adam and sums** of large arrays wait for memory.
- **The H200's products and weights' gradients.** f16 and bf16 products reach a third of PyTorch's speed at a side of 2048, and weights'
  gradients of 3x3 with 256 and more channels do, too.

[The notebook](../bench/notebook/2026-11-method-and-peers.md#what-is-missed-and-why) gives the reasons, and lists attempts without a gain."""
# How to read the entries of some classes.
REMARKS = """All CPUs are shared virtual machines. The one of `avx512-half` ran faster in some hours: it reached 530 GFLOP/s in
registers, too much for vectors in two halves. The entries of these hours stand under `avx512-full`. Where an entry names its CPU, clnet
and the peer had two threads of an AMD EPYC. The H200 was measured in one round of `tools/dev/real_gpu.sh`. First entries name no version,
among them all of OpenVINO's."""
MARKS = "ledger"


def empty(name):
    return {"format": FORMAT, "class": name, "taken": {}, "entries": []}


def problem_of(ledger, name):
    """What is wrong with a ledger; None: nothing."""
    if not isinstance(ledger, dict) or ledger.get("format") != FORMAT:
        return f"is not of format {FORMAT}"
    if ledger.get("class") != name:
        return f"is of class {ledger.get('class')!r}, not {name!r}"
    if not isinstance(ledger.get("entries"), list) or not isinstance(ledger.get("taken"), dict):
        return 'has no "entries" or no "taken"'
    for hash, taken in ledger["taken"].items():
        if not is_taken(taken) or hash_of(taken) != hash:
            return f"has a hash {hash} that is not of what stands beside it"
    seen = set()
    for entry in ledger["entries"]:
        if problem := problem_of_entry(entry, ledger["taken"]):
            return f"has an entry {json.dumps(entry)[:80]} that {problem}"
        if (entry["item"], entry["peer"]) in seen:
            return f"has two entries of {entry['item']} beside {entry['peer']}"
        seen.add((entry["item"], entry["peer"]))
    return None


def is_taken(value):
    return (isinstance(value, dict) and set(value) == {"solvers", "kernels"} and isinstance(value["solvers"], list)
            and isinstance(value["kernels"], dict) and all(isinstance(text, str) for text in [*value["solvers"], *value["kernels"].values()]))


def is_number(value):
    """A finite one, that can be printed."""
    return type(value) in (int, float) and abs(value) < 1e15


def is_date(value):
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value) and datetime.date.fromisoformat(value))
    except (TypeError, ValueError):
        return False


def problem_of_entry(entry, taken):
    if not isinstance(entry, dict) or not set(FIELDS) <= set(entry):
        return "lacks a field"
    if unknown := set(entry) - set(FIELDS) - set(MORE):
        return f"has a field '{min(unknown)}' that nobody knows"
    if not isinstance(entry["item"], str) or not re.fullmatch(r"[a-z][a-zA-Z0-9.-]*", entry["item"]):
        return "names no item"
    if entry["peer"] not in list(TITLES):
        return "names no peer"
    if not is_number(entry["ratio"]) or not entry["ratio"] > 0:
        return "has no ratio above 0"
    for keys, fits, what in ((NUMBERS, is_number, "number"), (TEXTS, lambda value: isinstance(value, str), "text")):
        for key in keys:
            if entry.get(key) is not None and not fits(entry[key]):
                return f"has a {key} that is no {what}"
    spread, versions = entry.get("spread"), entry["versions"]
    if spread is not None and not (isinstance(spread, list) and len(spread) == 2 and all(map(is_number, spread))):
        return "has a spread that is no two numbers"
    if versions is not None and not (isinstance(versions, dict) and all(isinstance(text, (str, type(None))) for text in versions.values())):
        return "has versions that are no texts by name"
    if entry["date"] is not None and not is_date(entry["date"]):
        return "has a date that is not YYYY-MM-DD"
    if entry["hash"] is not None and entry["hash"] not in list(taken):
        return "has a hash of nothing"
    return None


def read(folder, name):
    """The ledger of a class, which may be empty; raises ValueError where the file is none."""
    path = pathlib.Path(folder) / f"{name}.json"
    try:
        ledger = json.loads(path.read_text())
    except FileNotFoundError:
        return empty(name)
    except OSError as problem:
        raise ValueError(f"{path}: {problem.strerror}") from None
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    if problem := problem_of(ledger, name):
        raise ValueError(f"{path}: {problem}")
    return ledger


def read_all(folder):
    """Ledgers by class, in the order of the columns."""
    names = [path.stem for path in sorted(pathlib.Path(folder).glob("*.json"))]
    known = list(CLASSES)
    return {name: read(folder, name) for name in sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))}


def text_of(ledger):
    """An entry is a line, so that a changed one is a changed line."""
    def lines(parts):
        return ",\n".join(parts)
    taken = lines(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(ledger["taken"].items()))
    entries = lines(json.dumps({key: entry[key] for key in FIELDS + MORE if key in FIELDS or entry.get(key) is not None})
                    for entry in sorted(ledger["entries"], key=order))
    return (f'{{"format": {ledger["format"]}, "class": {json.dumps(ledger["class"])},\n"taken": {{\n{taken}\n}},\n'
            f'"entries": [\n{entries}\n]}}\n')


def write(folder, ledger):
    if problem := problem_of(ledger, ledger.get("class")):
        raise ValueError(f"the new ledger {problem}")
    path = pathlib.Path(folder) / f"{ledger['class']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(text_of(ledger))
    os.replace(fresh, path)
    return path


def merged(ledger, entries, taken):
    """The ledger with new entries in place of those of the same items and peers, and without what no entry needs any more."""
    new = {(entry["item"], entry["peer"]): entry for entry in entries}
    kept = [entry for entry in ledger["entries"] if (entry["item"], entry["peer"]) not in new]
    everything = kept + list(new.values())
    needed = {entry["hash"] for entry in everything}
    known = {**ledger["taken"], **taken}
    return {**ledger, "entries": everything, "taken": {hash: value for hash, value in known.items() if hash in needed}}


def order(entry):
    """Items of a kind side by side, numbers in their order, PyTorch first."""
    item = parse(entry["item"])
    kind = list(KINDS).index(item.kind) if item else len(KINDS)
    name = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", entry["item"])]
    return kind, name, list(TITLES).index(entry["peer"])


def class_of(found, machine, avx512=False):
    """The class of what clnet-info --json says of a device, on a machine of platform.machine()'s kind, with or without AVX-512."""
    if "llvmpipe" in found["name"].lower():
        return "llvmpipe"
    if found["type"].lower() == "cpu":
        if found["class"] == "cpu-4" and machine in ("aarch64", "arm64"):
            return "neon"
        names = [name for name, known in CLASSES.items() if known.model == found["class"] and found["class"].startswith("cpu-")]
        name = names[0] if names else "cpu-other"
        if name == "avx2" and avx512:
            name = "avx2-on-avx512"
        return name if found["platform"] == "Portable Computing Language" else f"{name}-{found['platform'].split()[0].lower()}"
    words = re.sub(r"\b(nvidia|geforce|tesla|quadro|amd|radeon|intel|graphics|corporation|\d+ ?gb|hbm\w*|sxm\w*|pcie)\b|\((r|tm)\)", " ",
                   found["name"].lower())
    return "-".join(re.findall(r"[a-z0-9]+", words)) or found["class"]


def is_of_cpus(name):
    """Whether it is the name of a class that is not a GPU's, with or without a platform behind it."""
    cpus = ["cpu"] + [known for known in CLASSES if not CLASSES[known].model.startswith(("nvidia", "amd", "intel"))]
    return any(name == cpu or name.startswith(cpu + "-") for cpu in cpus)


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def commit(root=ROOT):
    """The commit that is checked out, and whether anything but what --ledger and its pages write was changed since."""
    found = git(root, "rev-parse", "--short", "HEAD").stdout.strip()
    changed = git(root, "diff", "--quiet", "HEAD", "--", ".", ":!bench/ledger", ":!docs").returncode
    return found + ("-dirty" if changed else "") if found else "(no git)"


def is_checked_out(named, root):
    """Whether git describe --dirty's name of a commit is of the one that is checked out, clean."""
    wanted = git(root, "rev-parse", "--quiet", "--verify", named + "^{commit}").stdout
    return bool(wanted) and wanted == git(root, "rev-parse", "HEAD").stdout and not commit(root).endswith("-dirty")


def is_old(entry, ledger, kernels):
    """Whether it is from before the last change of what clnet took, or does not say what that was."""
    if entry["hash"] is None:
        return True
    return not all(kernels.has(part, hash) for part, hash in ledger["taken"][entry["hash"]]["kernels"].items())


def old_items(ledger, kernels):
    return sorted({entry["item"] for entry in ledger["entries"] if is_old(entry, ledger, kernels)})


def row_of(peer):
    """Classes differ in what PyTorch computes on: it is one row."""
    return "pytorch" if peer == "pytorch-cuda" else peer


def cell(entry, ledger, kernels):
    return f"{entry['ratio']:.2f}" + (MARK if is_old(entry, ledger, kernels) else "")


def cells_of(ledgers, kernels):
    """(item, peer) -> {class: cell}, in the order of the page."""
    found, keys = {}, {}
    for name, ledger in ledgers.items():
        for entry in ledger["entries"]:
            key = entry["item"], row_of(entry["peer"])
            found.setdefault(key, {})[name] = cell(entry, ledger, kernels)
            keys[key] = order(entry)
    return {key: found[key] for key in sorted(found, key=lambda key: (keys[key][:2], list(TITLES).index(key[1])))}


def columns(ledgers):
    return [name for name, ledger in ledgers.items() if ledger["entries"]]


def page(ledgers, kernels):
    """docs/ledger.md"""
    lines = ["# Measured ratios, by class of machine", "",
             "<!-- Written by tools/dev/ledger.py page from bench/ledger: edit neither by hand. -->", "",
             "A ratio is the peer's time by clnet's: above 1, clnet is faster. " + explanation(), "",
             "[The notebook](../bench/notebook/2026-11-method-and-peers.md#the-ledger) says how entries are made, and "
             "what a hash does not see.", "", "## Classes", "",
             "| class | devices | model | entries | old | shipped defaults are chosen |", "|---|---|---|---|---|---|"]
    for name in list(CLASSES) + [name for name in ledgers if name not in CLASSES]:
        known, ledger = CLASSES.get(name, OTHER), ledgers.get(name) or empty(name)
        old = sum(is_old(entry, ledger, kernels) for entry in ledger["entries"])
        lines.append(f"| `{name}` | {known.devices} | {f'`{known.model}`' if known.model else ''} | {len(ledger['entries'])} | {old} | "
                     f"{known.defaults} |")
    shown = columns(ledgers)
    lines += ["", REMARKS, "", "## Where clnet is slower", "", SLOWER, "", "The lowest ratios of each class:", "", *lowest_lines(ledgers, kernels)]
    lines += ["", "## All ratios", "", "| item | peer | " + " | ".join(f"`{name}`" for name in shown) + " |", "|---" * (2 + len(shown)) + "|"]
    for (item, peer), found in cells_of(ledgers, kernels).items():
        lines.append(f"| `{item}` | {TITLES[peer]} | " + " | ".join(found.get(name, "–") for name in shown) + " |")
    return "\n".join(lines) + "\n"


def explanation():
    return f"{MARK} marks an old entry: its solver's kernels have changed since, or it names none."


def check_shown(ledgers):
    """Raises ValueError where docs/performance.md would show fewer weak items than there are to show."""
    below = {entry["item"] for ledger in ledgers.values() for entry in ledger["entries"] if entry["ratio"] < 1}
    found = below & set(SHOWN)
    if len(found) < min(LEAST_BELOW, len(below)):
        raise ValueError(f"docs/performance.md would show {len(found)} items below 1.0 of {len(below)} that there are: "
                         f"put weak ones into SHOWN in tools/dev/ledger.py, as {', '.join(sorted(below - found)[:LEAST_BELOW])}")


def shown_lines(ledgers, kernels):
    """The table in docs/performance.md: the peers of an item share its cell."""
    check_shown(ledgers)
    cells, names = cells_of(ledgers, kernels), columns(ledgers)
    lines = [f"A cell is PyTorch's time by clnet's; other peers are named. {explanation()}", "",
             "| item | " + " | ".join(f"`{name}`" for name in names) + " |", "|---" * (1 + len(names)) + "|"]
    for item in SHOWN:
        row = [f"`{item}`"]
        for name in names:
            beside = [("" if peer == "pytorch" else TITLES[peer] + " ") + found[name]
                      for (known, peer), found in cells.items() if known == item and name in found]
            row.append(", ".join(beside) or "–")
        lines.append("| " + " | ".join(row) + " |")
    return lines


def lowest_lines(ledgers, kernels):
    """Of each class how many entries are below 1.0, and the lowest ones."""
    lines = []
    for name in columns(ledgers):
        entries = ledgers[name]["entries"]
        below = sorted((entry for entry in entries if entry["ratio"] < 1), key=lambda entry: (entry["ratio"], order(entry)))
        lowest = [f"`{entry['item']}` {'' if row_of(entry['peer']) == 'pytorch' else TITLES[entry['peer']] + ' '}"
                  f"{cell(entry, ledgers[name], kernels)}" for entry in below[:LOWEST]]
        lines.append(f"- `{name}`, {len(below)} of {len(entries)} below 1.0" + (": " + ", ".join(lowest) if lowest else "") + ".")
    return lines


def pages(root):
    """What the pages should hold: {path: text}"""
    ledgers, kernels = read_all(root / "bench/ledger"), Kernels(root / "kernels")
    performance = root / "docs/performance.md"
    try:
        shown = replace_between_marks(performance.read_text(), MARKS, shown_lines(ledgers, kernels))
    except ValueError as problem:
        raise ValueError(f"{performance}: {problem}") from None
    return {root / "docs/ledger.md": page(ledgers, kernels), performance: shown}


def run_page(root, check):
    wanted = pages(root)
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if check and stale:
        sys.exit("\n".join(f"{path.relative_to(root)} is not what bench/ledger and kernels/ say: run tools/dev/ledger.py page"
                           for path in stale))
    for path in [] if check else stale:
        path.write_text(wanted[path])
        print(f"{path.relative_to(root)} written")


def run_old(root, name):
    folder = root / "bench/ledger"
    if not (folder / f"{name}.json").exists():
        known = ", ".join(path.stem for path in sorted(folder.glob("*.json")))
        raise ValueError(f"there is no class '{name}' in {folder}; there are: {known}")
    items = old_items(read(folder, name), Kernels(root / "kernels"))
    if not items:
        raise ValueError(f"nothing of {name} is old")
    print("\n".join(items))


ABOUT = re.compile(r"== clnet (\w[\w.-]*), (\d{4}-\d\d-\d\d)T")


def gpu_entries(text, taken):
    """The entries that a summary.txt of real_gpu.sh has. taken(item): what clnet takes for it there, or None."""
    about = ABOUT.search(text)
    peer = re.search(r"PyTorch (\d[\w.+]*), CUDA", text)
    driver = re.search(r"MiB, ([\d.]+), ", text)
    rows = re.findall(r"^\| ([a-z][\w.-]*) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", text, re.M)
    if not about or not peer or not rows:
        raise ValueError("is no summary.txt of real_gpu.sh with clnet's commit, PyTorch's version and a table of both's times")
    found, entries = {}, []
    for item, *numbers in rows:
        ours, theirs, ratio = map(float, numbers)
        if not ours or not theirs or not ratio:  # shorter than the table's digits
            continue
        what = taken(item)
        if what:
            found[hash_of(what)] = what
        entries.append({"item": item, "peer": "pytorch-cuda", "ratio": ratio, "rounds": 1, "date": about[2], "commit": about[1],
                        "cpu": None, "versions": {"driver": driver and driver[1], "pytorch-cuda": peer[1]},
                        "hash": hash_of(what) if what else None, "clnet_ms": ours, "peer_ms": theirs})
    return entries, found


def taken_on_null_driver(build, device, kernels):
    """A function that tells what clnet takes for an item on the null driver's device; raises RuntimeError where there is none."""
    bench, driver = build / "tools/clnet-bench", build / "tests/null_opencl.icd"
    if not bench.exists():
        raise ValueError(f"there is no {bench}: --build names a build")
    if not driver.exists():
        raise RuntimeError(f"there is no {driver}, the null driver")
    variables = {"OCL_ICD_VENDORS": str(driver), "NULL_OPENCL_DEVICE": device, "CLNET_CACHE": "off", "CLNET_TUNE": "off",
                 "CLNET_QUIRKS": "off"}
    try:
        log_of(str(bench), "matmul-64-b64", variables)
    except RuntimeError as problem:
        raise RuntimeError(f"the null driver runs no device '{device}': {problem}") from None
    return lambda item: taken_of(item, log_of(str(bench), item, variables), kernels)


def run_gpu(root, summary, name, build):
    folder, path = root / "bench/ledger", pathlib.Path(summary)
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        sys.exit(f"'{name}' is no name of a class: small letters, digits and - between them")
    if is_of_cpus(name):
        sys.exit(f"'{name}' is no class of GPUs: tools/dev/compare_peers.py --ledger enters what CPUs do")
    try:
        text = path.read_text()
        about, taken, why = ABOUT.search(text), lambda item: None, None
        if about and not is_checked_out(about[1], root):
            why = f"{about[1]}, which was measured, is not what is checked out, or files have changed since"
        elif about:
            try:
                taken = taken_on_null_driver(build, name, Kernels(root / "kernels"))
            except RuntimeError as problem:
                why = problem
        entries, found = gpu_entries(text, taken)
    except (OSError, ValueError, RuntimeError) as problem:
        sys.exit(f"{path}: {problem}")
    if why:
        print(f"no hashes, so that the entries count as old: {why}")
    print(f"entered into {write(folder, merged(read(folder, name), entries, found))}: {len(entries)} ratios, {len(found)} hashes")


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page").add_argument("--check", action="store_true")
    commands.add_parser("old").add_argument("name", metavar="CLASS")
    gpu = commands.add_parser("gpu")
    gpu.add_argument("summary", metavar="SUMMARY")
    gpu.add_argument("name", metavar="CLASS")
    gpu.add_argument("--build", default=root / "build", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        if options.command == "page":
            run_page(root, options.check)
        elif options.command == "gpu":
            run_gpu(root, options.summary, options.name, options.build)
        else:
            run_old(root, options.name)
    except (OSError, ValueError) as problem:
        if options.command != "old":
            sys.exit(str(problem))
        # Where items are expected, so that --ledger $(tools/dev/ledger.py old CLASS) fails, and does not measure everything.
        print(problem)
        sys.exit(1)


if __name__ == "__main__":
    main()

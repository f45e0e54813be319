"""The table of compare_peers.py, from what was measured."""
import statistics

# PyTorch on a GPU is measured there by bench_torch_cuda.py.
TITLES = {"pytorch": "PyTorch", "pytorch-cuda": "PyTorch (CUDA)", "loop": "the same loop in PyTorch", "compiled": "torch.compile",
          "onnxruntime": "onnxruntime", "openvino": "OpenVINO"}


def ratios_of(ours, theirs):
    """The peer's time by clnet's: the rounds' ratios of medians, sorted, and the ratio of the best times of all rounds."""
    return sorted(t[0] / o[0] for o, t in zip(ours, theirs)), min(t[1] for t in theirs) / min(o[1] for o in ours)


def table(items, ours, theirs, cpu=False):
    """ours: name -> [[median, best] of each round]; theirs: peer -> name -> [[median, best, CPU time] of each round], without the items
    that the peer cannot run."""
    columns = {peer: [f"{TITLES[peer]} ms", *(["CPU ms"] if cpu else []), "ratio", "rounds", "ratio of the best"] for peer in theirs}
    heads = ["item", "clnet ms"] + [head for peer in theirs for head in columns[peer]]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name in items:
        cells = [f"`{name}`", f"{statistics.median(times[0] for times in ours[name]):.3f}"]
        for peer, measured in theirs.items():
            if name not in measured:
                cells += ["–"] * len(columns[peer])
                continue
            ratios, best = ratios_of(ours[name], measured[name])
            cells.append(f"{statistics.median(times[0] for times in measured[name]):.3f}")
            if cpu:
                cells.append(f"{statistics.median(times[2] for times in measured[name]):.3f}")
            cells += [f"**{statistics.median(ratios):.2f}**", f"{ratios[0]:.2f} to {ratios[-1]:.2f}", f"{best:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def summary(ours, theirs):
    """A line with the smallest ratios of each peer."""
    parts = []
    for peer, measured in theirs.items():
        if not measured:
            continue
        found = {name: ratios_of(ours[name], rounds) for name, rounds in measured.items()}
        worst = min(found, key=lambda name: statistics.median(found[name][0]))
        best = min(found, key=lambda name: found[name][1])
        parts.append(f"{TITLES[peer]} {statistics.median(found[worst][0]):.2f} (`{worst}`), "
                     f"of the best times {found[best][1]:.2f} (`{best}`)")
    return "Smallest ratios: " + "; ".join(parts) + "." if parts else "No peer measured anything."


def replace_between_marks(text, name, lines):
    """The text with the lines between its marks of a name; raises ValueError where it has none."""
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if first not in text or last not in text:
        raise ValueError(f"has no {first} ... {last}")
    return text[:text.index(first) + len(first)] + "\n" + "\n".join(lines) + "\n" + text[text.index(last):]

#!/usr/bin/env python3
"""Trains char-lstm and char-gpt with clnet-train and in PyTorch: the same initial weights, batches and rates, and compares the losses.

  tools/dev/train_text_pytorch.py FILE.txt [--model char-gpt] [--steps 400] [--schedule constant] [--seed 1] [--svg FILE] [--json FILE]

Needs torch for the Python that runs it and build/tools/clnet-train (--train names another). Prints, per model, a line for every tenth
of the steps (means of the training loss), the losses on the validation set, and the largest difference. --svg draws the curves.
"""
import argparse
import json
import os
import struct
import subprocess
import tempfile
import time

LENGTH, BATCH, RATE = 64, 32, {"constant": 1e-3, "one-cycle": 4e-3}


def mix(x):
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 % 2**64
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb % 2**64
    return x ^ (x >> 31)


class Random:
    """lib/data/epoch_order.cpp's."""
    STEP = 0x9e3779b97f4a7c15

    def __init__(self, seed, epoch):
        self.state = mix((mix((seed + self.STEP) % 2**64) + epoch * self.STEP) % 2**64)

    def below(self, count):
        while True:
            self.state = (self.state + self.STEP) % 2**64
            x = mix(self.state)
            if x >= (2**64 - count) % count:
                return x % count


def batches(text, seed):
    """As data::batches makes them of a text, epoch after epoch."""
    samples, last = (len(text) - 1) // LENGTH, len(text) - LENGTH - 1
    for epoch in range(1 << 30):
        order, random = list(range(samples)), Random(seed, epoch)
        for left in range(samples, 1, -1):
            other = random.below(left)
            order[left - 1], order[other] = order[other], order[left - 1]
        shift = Random(~seed % 2**64, epoch).below(LENGTH)
        for first in range(0, samples, BATCH):
            yield [min(index * LENGTH + shift, last) for index in order[first:first + BATCH]]


def network(torch, name, classes):
    nn = torch.nn

    class CharLstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.lstm, self.fc = nn.Embedding(classes, 128), nn.LSTM(128, 128, 2, batch_first=True), nn.Linear(128, classes)

        def forward(self, x):
            return self.fc(self.lstm(self.emb(x))[0])

    class CharGpt(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)
            self.emb, self.positions = nn.Embedding(classes, 128), nn.Embedding(LENGTH, 128)
            self.encoder = nn.TransformerEncoder(layer, 4, nn.LayerNorm(128), enable_nested_tensor=False)
            self.fc = nn.Linear(128, classes)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH), persistent=False)
            for key, value in self.named_parameters():
                if value.dim() == 2:
                    nn.init.normal_(value, 0, 0.02 / (8**0.5 if "out_proj" in key or "linear2" in key else 1))
                elif key.endswith("bias"):
                    nn.init.zeros_(value)

        def forward(self, x):
            return self.fc(self.encoder(self.emb(x) + self.positions.weight, mask=self.mask, is_causal=True))

    return CharLstm() if name == "char-lstm" else CharGpt()


def save_safetensors(path, state):
    header, data = {}, b""
    for key, value in state.items():
        raw = struct.pack(f"<{value.numel()}f", *value.flatten().tolist())
        header[key] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def train_pytorch(torch, model, content, options):
    places = {byte: place for place, byte in enumerate(sorted(set(content)))}
    numbers = torch.tensor([places[byte] for byte in content])
    cut = len(content) - len(content) // 10
    train, test = numbers[:cut], numbers[cut:]
    adam, losses, start = torch.optim.Adam(model.parameters(), lr=RATE[options.schedule]), [], time.perf_counter()
    schedule = None
    if options.schedule == "one-cycle":
        schedule = torch.optim.lr_scheduler.OneCycleLR(adam, RATE["one-cycle"], total_steps=options.steps, cycle_momentum=False)

    def loss_of(source, starts):
        pieces = torch.stack([source[at:at + LENGTH + 1] for at in starts])
        return torch.nn.functional.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())

    for _, starts in zip(range(options.steps), batches(train, options.seed)):
        adam.zero_grad()
        loss = loss_of(train, starts)
        loss.backward()
        adam.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - start
    with torch.no_grad():
        samples = [at * LENGTH for at in range((len(test) - 1) // LENGTH)]
        total = sum(loss_of(test, samples[i:i + 100]).item() * len(samples[i:i + 100]) for i in range(0, len(samples), 100))
    return losses, total / len(samples), seconds


def train_clnet(name, init, options):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        start = time.perf_counter()
        subprocess.run([options.train, "--data", options.file, "--model", name, "--init", init, "--steps", str(options.steps), "--schedule",
                        options.schedule, "--lr", str(RATE[options.schedule]), "--seed", str(options.seed), "--log", log, "--save",
                        os.path.join(folder, "weights")], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        with open(log) as file:
            lines = [json.loads(line) for line in file]
    return [line["loss"] for line in lines if "step" in line], [line for line in lines if "epoch" in line][-1]["test_loss"], seconds


def svg(results):
    """Curves of both, side by side for each model."""
    width, height, margin = 360, 260, 45
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(results)}" height="{height + 30}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for place, (name, result) in enumerate(results.items()):
        curves = result["pytorch"], result["clnet"]
        low, high, steps = min(map(min, curves)) * 0.95, max(map(max, curves)), len(curves[0])
        x = lambda step: place * width + margin + step / steps * (width - margin - 15)
        y = lambda loss: 30 + (high - loss) / (high - low) * (height - 60)
        parts.append(f'<text x="{place * width + margin}" y="18">{name}: nats per character by step</text>')
        for tick in range(int(low) + 1, int(high) + 1):
            parts.append(f'<path d="M{x(0)} {y(tick):.1f}H{x(steps):.1f}" stroke="#ddd"/>'
                         f'<text x="{x(0) - 18}" y="{y(tick) + 4:.1f}">{tick}</text>')
        for tick in range(0, steps + 1, steps // 4):
            parts.append(f'<text x="{x(tick):.1f}" y="{height - 12}" text-anchor="middle">{tick}</text>')
        for label, color, stroke, row, losses in (("PyTorch", "#d6604d", 3.5, 0, curves[0]), ("clnet", "#2166ac", 1.2, 1, curves[1])):
            every = max(1, steps // 200)
            points = " ".join(f"{x(at + 1):.1f},{y(losses[at]):.1f}" for at in range(0, steps, every))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{stroke}"/>'
                         f'<text x="{x(steps) - 60:.1f}" y="{45 + 16 * row}" fill="{color}">{label}</text>')
    return "\n".join(parts) + "</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--model", choices=["char-lstm", "char-gpt"], action="append")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--schedule", choices=sorted(RATE), default="constant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train", default=os.path.join(os.path.dirname(__file__), "../../build/tools/clnet-train"))
    parser.add_argument("--svg")
    parser.add_argument("--json")
    options = parser.parse_args()

    import torch
    torch.manual_seed(options.seed)
    with open(options.file, "rb") as file:
        content = file.read()
    results = {}
    for name in options.model or ["char-lstm", "char-gpt"]:
        model = network(torch, name, len(set(content)))
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as init:
            save_safetensors(init.name, model.state_dict())
            ours, our_test, our_seconds = train_clnet(name, init.name, options)
        theirs, their_test, their_seconds = train_pytorch(torch, model, content, options)
        results[name] = {"clnet": ours, "pytorch": theirs, "clnet_validation": our_test, "pytorch_validation": their_test}
        part = max(1, options.steps // 10)
        print(f"{name}, {options.steps} steps, {options.schedule} rate {RATE[options.schedule]}: clnet {our_seconds:.0f} s with its "
              f"validation, PyTorch {torch.__version__} {their_seconds:.0f} s without")
        for first in range(0, options.steps, part):
            a, b = (sum(losses[first:first + part]) / len(losses[first:first + part]) for losses in (ours, theirs))
            print(f"  steps to {min(first + part, options.steps):5}: clnet {a:.4f}, PyTorch {b:.4f}, {100 * (a / b - 1):+.2f} %")
        worst = max(abs(a / b - 1) for a, b in zip(ours, theirs))
        print(f"  validation: clnet {our_test:.4f}, PyTorch {their_test:.4f}, {100 * (our_test / their_test - 1):+.2f} %; "
              f"largest difference of a step {100 * worst:.2f} %", flush=True)
    if options.svg:
        with open(options.svg, "w") as file:
            file.write(svg(results))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures items of clnet-bench and the same work in PyTorch, in turn, and prints the ratios as a table.

  tools/dev/compare_pytorch.py [--rounds 3] [--seconds 1] [--threads N] [--json FILE] [--write docs/performance.md] [item...]

Needs torch for the Python that runs it (Debian: python3-torch, /usr/bin/python3) and build/tools/clnet-bench (--bench names another).
PyTorch runs in a process of its own with its best settings: OPENBLAS_CORETYPE and the like unset, the OpenMP build of OpenBLAS first on
the library path where there is one, as many threads as cores, a heap that is kept, and the fastest of its layouts: plain, channels_last
and, for inference, oneDNN's own with packed weights. Where other programs load the machine, spinning OpenMP threads lose many times
over, which flatters clnet: PyTorch also gets threads that sleep while they wait (the better of both counts), the ratio of the best times
stands beside that of the medians, and the table says how loaded the machine was. Items (clnet-bench --list) may be any matmul-N, convolution or network of BARS;
without names all of BARS are measured. --write replaces what is between <!-- ratios --> and <!-- end of ratios --> in a file, --json
writes the median and best of every round.
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

BARS = """matmul-1024 conv-3-64-224-b16-forward
conv-64-64-56-b16-forward conv-64-64-56-b16-backward-data conv-64-64-56-b16-backward-weights
conv-128-128-28-b16-forward conv-128-128-28-b16-backward-data conv-128-128-28-b16-backward-weights
conv-256-256-14-b16-forward conv-256-256-14-b16-backward-data conv-256-256-14-b16-backward-weights
conv-512-512-7-b16-forward conv-512-512-7-b16-backward-data conv-512-512-7-b16-backward-weights
conv1x1-256-64-56-b16-forward conv1x1-64-256-56-b16-forward depthwise-144-56-b16-forward
keras-cnn-train-b32 keras-cnn-train-b128 cnn-train-b64 cnn-train-b256
resnet18-infer-b1 resnet18-infer-b16 resnet18-train-b16 mobilenetv2-infer-b16 mobilenetv2-train-b16""".split()

NETWORKS = "keras-cnn", "cnn", "resnet18", "mobilenetv2"
RECURRENT = re.compile(r"(lstm|gru)-(\d+)-(forward|gradient)-b(\d+)$")
AXES = re.compile(r"(conv|transposed)(\d)d-(\d+)-(\d+)-(\d+)-k(\d+)-s(\d+)-b(\d+)-(forward|train)$")
POOL = re.compile(r"(max|avg)pool(\d)s(\d)-(\d+)-(\d+)-b(\d+)-(forward|backward)$")
MODELS = re.compile(r"lstm-by-hand-128-t200-b32$|char-gpt-(train-b32|generate-b1)$|vit-tiny-infer-b\d+$|unet-128-train-b\d+$|mlp-infer-b1(-compiled)?$")
ELEMENTWISE = re.compile(r"elementwise-(exp|log|log1p|expm1|sin|cos|tanh|erf|rsqrt|gelu|pow2|pow2\.5|pow-x)-1m$|permute-6d-1m$")
CONVOLUTION = re.compile(r"(conv|conv1x1|depthwise(?=-\d+-\d+-b))-(\d+-\d+(?:-\d+)?)-b(\d+)-(forward|backward-data|backward-weights)$")


def networks(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
            self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
            self.down = None
            if stride != 1 or cin != cout:
                self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

        def forward(self, x):
            y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            return torch.relu(y + (self.down(x) if self.down else x))

    class Inverted(nn.Module):
        def __init__(self, cin, cout, stride, expansion):
            super().__init__()
            wide = cin * expansion
            layers = [norm(cin, wide, 1, 1, 1)] if expansion != 1 else []
            layers += [norm(wide, wide, 3, stride, wide), nn.Conv2d(wide, cout, 1, bias=False), nn.BatchNorm2d(cout)]
            self.conv, self.residual = nn.Sequential(*layers), stride == 1 and cin == cout

        def forward(self, x):
            return x + self.conv(x) if self.residual else self.conv(x)

    def norm(cin, cout, kernel, stride, groups):
        conv = nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(cout), nn.ReLU6(inplace=True))

    def resnet18():
        layers, cin = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for stage, width in enumerate((64, 128, 256, 512)):
            for block in range(2):
                layers.append(Block(cin, width, 2 if stage and not block else 1))
                cin = width
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))

    def mobilenetv2():
        layers, cin = [norm(3, 32, 3, 2, 1)], 32
        for t, c, n, s in (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1):
            for block in range(n):
                layers.append(Inverted(cin, c, 1 if block else s, t))
                cin = c
        return nn.Sequential(*layers, norm(320, 1280, 1, 1, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
                             nn.Linear(1280, 1000))

    def cnn():
        return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))

    def keras_cnn():
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5408, 10))

    return {"resnet18": (resnet18, (3, 224, 224), 1000), "mobilenetv2": (mobilenetv2, (3, 224, 224), 1000),
            "cnn": (cnn, (1, 28, 28), 10), "keras-cnn": (keras_cnn, (1, 28, 28), 10)}


def convolution(torch, name):
    """The layer of an item's name: conv-IN-OUT-SIZE-bN, conv1x1-..., depthwise-CHANNELS-SIZE-bN."""
    found = CONVOLUTION.match(name)
    if not found:
        return None
    numbers = [int(n) for n in found[2].split("-")]
    cin, cout, size = (numbers[0], numbers[0], numbers[1]) if found[1] == "depthwise" else numbers
    kernel = 1 if found[1] == "conv1x1" else 3
    groups = cin if found[1] == "depthwise" else 1
    x, w = torch.rand(int(found[3]), cin, size, size), torch.rand(cout, cin // groups, kernel, kernel)
    return x, w, kernel // 2, groups, found[4]


def transformer(torch, width, heads, layers):
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    return torch.nn.TransformerEncoder(layer, layers, torch.nn.LayerNorm(width), enable_nested_tensor=False)


def char_gpt(torch):
    """models::CharGpt, with a step that keeps keys and values."""
    nn, functional = torch.nn, torch.nn.functional

    class CharGpt(nn.Module):
        def __init__(self, alphabet=65, width=128, heads=4, layers=4, context=64):
            super().__init__()
            self.emb, self.positions = nn.Embedding(alphabet, width), nn.Embedding(context, width)
            self.encoder, self.fc = transformer(torch, width, heads, layers), nn.Linear(width, alphabet)
            self.heads, self.context = heads, context
            self.mask = nn.Transformer.generate_square_subsequent_mask(context)

        def forward(self, x):
            y = self.emb(x) + self.positions(torch.arange(x.shape[1]))
            return self.fc(self.encoder(y, mask=self.mask, is_causal=True))

        def step(self, character, position, caches):
            y = self.emb(character) + self.positions(position)
            for layer, cache in zip(self.encoder.layers, caches):
                of = layer.self_attn
                q, k, v = functional.linear(layer.norm1(y), of.in_proj_weight, of.in_proj_bias).view(3, self.heads, 1, -1)
                cache[0][:, position], cache[1][:, position] = k, v
                seen = slice(0, int(position) + 1)
                z = functional.scaled_dot_product_attention(q, cache[0][:, seen], cache[1][:, seen])
                y = y + of.out_proj(z.reshape(1, -1))
                y = y + layer.linear2(functional.gelu(layer.linear1(layer.norm2(y))))
            return self.fc(self.encoder.norm(y))

    return CharGpt()


def axes_convolution(torch, name):
    """conv1d-IN-OUT-SIZE-kK-sS-bN-(forward|train), conv3d-..., transposed1d-..."""
    found = AXES.match(name)
    if not found:
        return None
    axes, (cin, cout, size, kernel, stride, batch) = int(found[2]), map(int, found.groups()[2:8])
    transposed = found[1] == "transposed"
    x = torch.rand(batch, cin, *[size] * axes)
    w = torch.rand(*((cin, cout) if transposed else (cout, cin)), *[kernel] * axes)
    function = getattr(torch.nn.functional, f"conv{'_transpose' if transposed else ''}{axes}d")

    def run():
        if found[9] == "forward":
            with torch.no_grad():
                return function(x, w, stride=stride, padding=kernel // 2)
        a, b = x.detach().requires_grad_(), w.detach().requires_grad_()
        function(a, b, stride=stride, padding=kernel // 2).sum().backward()
    return run


def pool(torch, name):
    """maxpool3s2-CHANNELS-SIZE-bN-(forward|backward), avgpool3s2-..."""
    found = POOL.match(name)
    if not found:
        return None
    kernel, stride, channels, size, batch = map(int, found.groups()[1:6])
    function = getattr(torch.nn.functional, found[1] + "_pool2d")
    x = torch.rand(batch, channels, size, size, requires_grad=found[7] == "backward")
    y = function(x, kernel, stride, (kernel - 1) // 2)
    if found[7] == "forward":
        return lambda: function(x, kernel, stride, (kernel - 1) // 2)
    g = torch.rand_like(y)
    return lambda: torch.autograd.grad(y, x, g, retain_graph=True)


def model_run(torch, name):
    """The work of an item of tools/bench_models.cpp; None for others."""
    nn, functional = torch.nn, torch.nn.functional
    if found := RECURRENT.match(name):
        hidden = int(found[2])
        model = (nn.LSTM if found[1] == "lstm" else nn.GRU)(hidden, hidden, 2)
        x = torch.rand(64, int(found[4]), hidden)

        def run():
            if found[3] == "forward":
                with torch.no_grad():
                    return model(x)
            model.zero_grad()
            model(x)[0].sum().backward()
        return run
    if run := axes_convolution(torch, name) or pool(torch, name):
        return run
    if name == "lstm-by-hand-128-t200-b32":
        # PyTorch's own LSTM, which is what its users would take.
        model, x = nn.LSTM(128, 128, 2), torch.rand(200, 32, 128)

        def run():
            model.zero_grad()
            model(x)[0].sum().backward()
        return run
    if name == "char-gpt-train-b32":
        model = char_gpt(torch)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        x = torch.arange(32 * 64).pow(2).remainder(65)
        x, targets = x.view(32, 64), (x + 1).remainder(65)

        def run():
            loss = functional.cross_entropy(model(x).flatten(0, 1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return run
    if name == "char-gpt-generate-b1":
        model = char_gpt(torch).eval()

        def run():
            caches = [(torch.empty(4, 64, 32), torch.empty(4, 64, 32)) for _ in range(4)]
            character = 0
            with torch.no_grad():
                for i in range(64):
                    character = int(model.step(torch.tensor([character]), torch.tensor([i]), caches).argmax())
        return run
    if name.startswith("vit-tiny-infer-b"):
        class VisionTransformer(nn.Module):
            def __init__(self):
                super().__init__()
                self.patches = nn.Conv2d(3, 192, 16, 16)
                self.token, self.positions = nn.Parameter(torch.zeros(1, 1, 192)), nn.Parameter(torch.zeros(197, 192))
                self.encoder, self.head = transformer(torch, 192, 3, 12), nn.Linear(192, 1000)

            def forward(self, x):
                seen = self.patches(x).flatten(2).transpose(1, 2)
                y = torch.cat([self.token.expand(len(x), 1, 192), seen], 1) + self.positions
                return self.head(self.encoder(y)[:, 0])
        model, x = VisionTransformer().eval(), torch.full((int(name.rsplit("b", 1)[1]), 3, 224, 224), 0.5)

        def run():
            with torch.no_grad():
                return model(x).tolist()
        return run
    if name.startswith("unet-128-train-b"):
        def twice(cin, cout):
            return nn.Sequential(nn.Conv2d(cin, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
                                 nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())

        class UNet(nn.Module):
            def __init__(self, base=16):
                super().__init__()
                widths = [base << level for level in range(4)]
                self.down = nn.ModuleList(twice(a, b) for a, b in zip([3] + widths, widths))
                self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[2::-1])
                self.up = nn.ModuleList(twice(2 * w, w) for w in widths[2::-1])
                self.head = nn.Conv2d(base, 2, 1)

            def forward(self, x):
                seen = []
                for level in self.down:
                    x = level(functional.max_pool2d(x, 2) if seen else x)
                    seen.append(x)
                for wider, up, skip in zip(self.wider, self.up, seen[2::-1]):
                    x = up(torch.cat([skip, wider(x)], 1))
                return self.head(x)
        model, batch = UNet(), int(name.rsplit("b", 1)[1])
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        x, labels = torch.full((batch, 3, 128, 128), 0.5), (torch.arange(batch * 128 * 128) // 7 % 2).view(batch, 128, 128)

        def run():
            loss = functional.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return run
    if name.startswith("mlp-infer-b1"):
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)).eval()
        if name.endswith("-compiled"):
            model = torch.compile(model)
        x = torch.full((1, 784), 0.5)

        def run():
            with torch.no_grad():
                return model(x).tolist()
        return run
    return None


def torch_runs(torch, name):
    """Functions that do the item's work once, in every setting worth trying."""
    if name.startswith("matmul-"):
        n = int(name.split("-")[1])
        a, b = torch.rand(n, n), torch.rand(n, n)
        return [lambda: torch.matmul(a, b)]
    if found := ELEMENTWISE.match(name):
        x = torch.rand(4, 8, 4, 16, 16, 32)
        special = {"gelu": torch.nn.functional.gelu, "pow2": lambda x: x.pow(2), "pow2.5": lambda x: x.pow(2.5), "pow-x": lambda x: x.pow(x),
                   None: lambda x: x.permute(5, 3, 1, 4, 2, 0).contiguous()}
        function = special.get(found[1]) or getattr(torch, found[1])
        return [lambda: function(x)]
    if model := model_run(torch, name):
        return [model]
    layer = convolution(torch, name)
    if layer:
        runs = []
        for layout in torch.contiguous_format, torch.channels_last:
            x, w, padding, groups, what = layer
            x, w = x.contiguous(memory_format=layout), w.contiguous(memory_format=layout)
            if what == "forward":
                def run(x=x, w=w):
                    with torch.no_grad():
                        torch.nn.functional.conv2d(x, w, None, 1, padding, 1, groups)
            else:
                g = torch.nn.functional.conv2d(x, w, None, 1, padding, 1, groups)
                mask = [what == "backward-data", what == "backward-weights", False]

                def run(x=x, w=w, g=g, mask=mask):
                    torch.ops.aten.convolution_backward(g, x, w, None, [1, 1], [padding] * 2, [1, 1], False, [0, 0], groups, mask)
            runs.append(run)
        return runs
    net, mode, batch = re.match(r"(.*)-(infer|train)-b(\d+)$", name).groups()
    make, shape, classes = networks(torch)[net]
    runs = []
    for layout in torch.contiguous_format, torch.channels_last:
        model = make().to(memory_format=layout)
        pixels = torch.rand(int(batch), *shape)
        if mode == "infer":
            model.eval()

            def run(model=model, pixels=pixels, layout=layout):
                with torch.no_grad():
                    return model(pixels.contiguous(memory_format=layout)).numpy()
        else:
            labels = torch.arange(int(batch)) % classes
            optimizer = (torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9) if classes == 1000
                         else torch.optim.Adam(model.parameters(), 1e-3))

            def run(model=model, pixels=pixels, layout=layout, labels=labels, optimizer=optimizer):
                loss = torch.nn.functional.cross_entropy(model(pixels.contiguous(memory_format=layout)), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        runs.append(run)
    return runs + packed_inference(torch, make().eval(), pixels) if mode == "infer" else runs


def packed_inference(torch, model, pixels):
    """Inference in oneDNN's layout with weights packed before; nothing where this PyTorch cannot run the model so."""
    def run():
        with torch.no_grad():
            return packed(pixels.to_mkldnn()).to_dense().numpy()
    try:
        from torch.utils.mkldnn import to_mkldnn
        packed = to_mkldnn(model)
        run()
    except (ImportError, RuntimeError, NotImplementedError):
        return []
    return [run]


def worker(names, seconds, threads):
    import torch
    torch.set_num_threads(threads)
    results = {}
    for name in names:
        times = []
        torch.manual_seed(1)
        for run in torch_runs(torch, name):
            for _ in range(3):
                run()
            samples, begin = [], time.perf_counter()
            while len(samples) < 5 or time.perf_counter() - begin < seconds:
                start = time.perf_counter()
                run()
                samples.append(time.perf_counter() - start)
            times.append([statistics.median(samples) * 1e3, min(samples) * 1e3])
        results[name] = [min(column) for column in zip(*times)]
    print(json.dumps({"torch": torch.__version__, "median_and_best_ms": results}))


def best_environment(threads):
    env = {k: v for k, v in os.environ.items() if not re.match(r"(OPENBLAS|OMP|GOMP|MKL|KMP)_", k)}
    openmp = f"/usr/lib/{platform.machine()}-linux-gnu/openblas-openmp"
    if os.path.isdir(openmp):
        env["LD_LIBRARY_PATH"] = openmp + ":" + env.get("LD_LIBRARY_PATH", "")
    env.update(OMP_NUM_THREADS=str(threads), MALLOC_MMAP_THRESHOLD_="4294967296", MALLOC_TRIM_THRESHOLD_="4294967296",
               MALLOC_TOP_PAD_="268435456")
    return env


def device(bench):
    """What clnet runs on, by the clnet-info beside clnet-bench."""
    done = subprocess.run([os.path.join(os.path.dirname(bench), "clnet-info"), "--json"], check=True, stdout=subprocess.PIPE)
    found = next(d for d in json.loads(done.stdout)["devices"] if d["default"])
    return f'{found["platform"]} {found["driver_version"]}, {found["native_float_width"]} floats wide'


def commit():
    done = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe", "--always", "--dirty"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().strip() or "(no git)"


def measure_clnet(options, name):
    """[median, best] in ms"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        subprocess.run([options.bench, name, "--seconds", str(options.seconds), "--json", path], check=True, stdout=subprocess.DEVNULL)
        with open(path) as file:
            result = json.load(file)[0]
    return [result["median_ms"], result["best_ms"]]


def measure_torch(options, name, policy):
    done = subprocess.run([sys.executable, __file__, "--worker", "--seconds", str(options.seconds), "--threads", str(options.threads), name],
                          check=True, stdout=subprocess.PIPE, env={**best_environment(options.threads), **policy})
    return json.loads(done.stdout)


def known(name):
    net = re.match(r"(.*)-(infer|train)-b\d+$", name)
    return bool(re.match(r"matmul-\d+$", name) or ELEMENTWISE.match(name) or RECURRENT.match(name) or AXES.match(name) or POOL.match(name) or MODELS.match(name) or CONVOLUTION.match(name) or net and net[1] in NETWORKS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("items", nargs="*", default=BARS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--bench", default="build/tools/clnet-bench")
    parser.add_argument("--json")
    parser.add_argument("--write")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.items, options.seconds, options.threads)
    unknown = [name for name in options.items if not known(name)]
    if unknown:
        parser.error(f"there is no item named '{unknown[0]}' here; clnet-bench --list prints clnet's, BARS in this file those compared")
    ours, theirs, version = {}, {}, ""
    load = []
    for _ in range(options.rounds):
        for name in options.items:
            load.append(os.getloadavg()[0])
            ours.setdefault(name, []).append(measure_clnet(options, name))
            sides = [measure_torch(options, name, policy) for policy in ({}, {"OMP_WAIT_POLICY": "passive"})]
            version = sides[0]["torch"]
            theirs.setdefault(name, []).append([min(both) for both in zip(*(side["median_and_best_ms"][name] for side in sides))])
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())[1]
    rounds = f"{options.rounds} interleaved round" + ("s" if options.rounds > 1 else "")
    lines = [f"{model}, {options.threads} threads; clnet {commit()} on {device(options.bench)}; PyTorch {version}; "
             f"medians of {rounds} of {options.seconds:g} s per item and side; "
             f"load average while measuring {min(load):.1f} to {max(load):.1f}.", "",
             "| item | clnet ms | PyTorch ms | ratio | rounds | ratio of the best |", "|---|---|---|---|---|---|"]
    for name in options.items:
        ratios = sorted(t[0] / o[0] for o, t in zip(ours[name], theirs[name]))
        medians = [statistics.median(times[0] for times in side[name]) for side in (ours, theirs)]
        best = [min(times[1] for times in side[name]) for side in (ours, theirs)]
        lines.append(f"| `{name}` | {medians[0]:.3f} | {medians[1]:.3f} | **{statistics.median(ratios):.2f}** | "
                     f"{ratios[0]:.2f} to {ratios[-1]:.2f} | {best[1] / best[0]:.2f} |")
    table = "\n".join(lines)
    print(table)
    if options.json:
        results = [{"name": name, "clnet_median_best_ms": ours[name], "pytorch_median_best_ms": theirs[name]} for name in options.items]
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    if options.write:
        with open(options.write) as file:
            text = file.read()
        first, last = "<!-- ratios -->", "<!-- end of ratios -->"
        if first not in text or last not in text:
            sys.exit(f"{options.write}: has no {first} ... {last}")
        text = text[:text.index(first) + len(first)] + "\n" + table + "\n" + text[text.index(last):]
        with open(options.write, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()

"""What tools/dev/reference_pages.py cannot read from the code."""

# ---- Layers

# Bases of layers and tools to make layers, which have no row of their own.
BASES = {"Convolution", "BatchNorm", "InstanceNorm", "Pool", "MaxPool", "Unpool", "Recurrent", "RecurrentCell", "Dropping", "Rearrange",
         "LossOf"}
# Classes that hold any layers.
CONTAINERS = {"Child", "Container", "ModuleDict", "ModuleList", "Sequential"}

# PyTorch's counterpart where it is not nn.<the same name>.
NOT_IN_TORCH = {
    "Activation": "a function",
    "FocalLoss": "`torchvision.ops.sigmoid_focal_loss`",
    "PositionalEncoding": "of its tutorials",
}

LAYER_PAGES = (
    {
        "path": "docs/reference/layers.md",
        "title": "Layers",
        "introduction": """\
This page lists the layers with parameters and their kin: constructors, options with defaults, and parameters. Activations, pooling,
padding and losses are in [layers without parameters](layers-functions.md). [Models and layers](../guide/models.md) shows how to use them.

Options are members of the last argument: `nn::Conv2d(3, 8, 3, {{.padding = 1}})`. Calls that list `options` take them there. Parameters
have PyTorch's names, so weights go to and from PyTorch unchanged. `nn::Sequential`, `nn::ModuleList` and `nn::ModuleDict` hold layers. Their parameters have the names of the
parts in front. {written}
""",
        "headers": (("linear", "Linear layers, embeddings and shapes"), ("conv", "Convolutions"), ("norm", "Normalization"),
                    ("recurrent", "Recurrent layers"), ("attention", "Attention"), ("transformer", "Transformers"),
                    ("adaptive_softmax", "Softmax of many classes")),
        "parameters": """\
## Parameters

These are the names and shapes in `state_dict()` of layers with the sizes shown, buffers among them. A test writes this table from the
program.
""",
    },
    {
        "path": "docs/reference/layers-functions.md",
        "title": "Layers without parameters",
        "introduction": """\
This page lists layers that compute a function: activations, dropout, pooling, padding and losses. Of these only `PReLU` has a parameter.
[Layers](layers.md) has the layers with parameters.

Options are members of the last argument: `nn::MaxPool2d(3, {{.stride = 2}})`. A stride may also stand behind the kernel's size. Dropout
and `RReLU` act in training mode only. Losses are called with several tensors, mostly input and target. Their weights are buffers.
{written}
""",
        "headers": (("activation", "Activations and dropout"), ("pool", "Pooling"), ("pad", "Padding and pixels"), ("image", "Images"),
                    ("loss", "Losses")),
        "parameters": None,
    },
)

# ---- Optimizers

# Optimizers whose state is no list of lib/optim's rules.
NO_STATE = {"LBFGS"}

# name: (formula of a step, state of each parameter, PyTorch's counterpart). p is the parameter, g the gradient, t the step.
FORMULAS = {
    "SGD": ("b = momentum b + g; p -= rate b", ("momentum_buffer",), "`optim.SGD`"),
    "ASGD": ("eta = rate / (1 + lambda rate t)^alpha; p = p (1 - lambda eta) - eta g; ax averages p from t0 on", ("ax",), "`optim.ASGD`"),
    "Rprop": ("p -= sign(g) step_size; step_size grows while the sign of g stays, and shrinks where it turns", ("prev", "step_size"),
              "`optim.Rprop`"),
    "LARS": ("b = momentum b + g trust norm(p) / (norm(g) + weight_decay norm(p) + eps); p -= rate b", ("momentum_buffer",), "none"),
    "Muon": ("b averages g; p -= rate scale orthogonal(b), for matrices", ("momentum_buffer",), "`optim.Muon`"),
    "Adam": ("m averages g, v averages g^2; p -= rate m / (sqrt(v) + eps), m and v corrected for the first steps",
             ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), "`optim.Adam`"),
    "AdamW": ("p *= 1 - rate weight_decay; then as Adam", ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), "`optim.AdamW`"),
    "NAdam": ("as Adam, with Nesterov's momentum in the place of m", ("exp_avg", "exp_avg_sq", "mu_product"), "`optim.NAdam`"),
    "RAdam": ("as Adam, rectified; p -= rate m while v is not known well enough", ("exp_avg", "exp_avg_sq"), "`optim.RAdam`"),
    "Adamax": ("u = max(beta2 u, abs(g) + eps); p -= rate m / u, m corrected for the first steps", ("exp_avg", "exp_inf"), "`optim.Adamax`"),
    "LAMB": ("s = m / (sqrt(v) + eps) + weight_decay p; p -= rate s norm(p) / norm(s)", ("exp_avg", "exp_avg_sq"), "none"),
    "Lion": ("p -= rate sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g", ("exp_avg",), "none"),
    "RMSprop": ("v averages g^2; b = momentum b + g / (sqrt(v) + eps); p -= rate b", ("square_avg", "momentum_buffer", "grad_avg"),
                "`optim.RMSprop`"),
    "Adagrad": ("s += g^2; p -= rate / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)", ("sum",), "`optim.Adagrad`"),
    "Adadelta": ("d = sqrt(u + eps) / sqrt(v + eps) g; p -= rate d; v averages g^2, u averages d^2", ("square_avg", "acc_delta"),
                 "`optim.Adadelta`"),
    "Adafactor": ("as Adam without m, v from means of rows and columns; the step is scaled by the size of p",
                  ("variance", "row_var", "col_var"), "`optim.Adafactor`"),
    "LBFGS": ("p -= rate H g, H from the last steps; optional line search", ("d", "prev_flat_grad", "old_dirs.<i>", "old_stps.<i>"),
              "`optim.LBFGS`"),
}

# PyTorch's class in torch.optim.lr_scheduler.
SCHEDULE_PYTORCH = {
    "constant": "none",
    "scaled": "LambdaLR",
    "step_decay": "StepLR",
    "multi_step": "MultiStepLR",
    "exponential": "ExponentialLR",
    "polynomial": "PolynomialLR",
    "linear": "LinearLR",
    "constant_factor": "ConstantLR",
    "cosine": "CosineAnnealingLR",
    "cosine_restarts": "CosineAnnealingWarmRestarts",
    "one_cycle": "OneCycleLR",
    "one_cycle_momentum": "OneCycleLR",
    "cyclic": "CyclicLR",
    "cyclic_momentum": "CyclicLR",
    "warm_up": "none",
    "sequential": "SequentialLR",
    "product": "ChainedScheduler",
}

OPTIMIZER_PAGE = """\
# Optimizers and schedules

This page lists all optimizers and schedules with their options, defaults and formulas. [The guide](../guide/optimizers.md) shows groups,
clipping and rules of your own. {written}

All optimizers except `LBFGS` also have `clip_norm` and `clip_value`, 0 for none, and all but `Muon` have `maximize`, false. A learning
rate may stand before the options: `optim::Adam(model, 1e-3)`.

## Optimizers

In the formulas p is the parameter, g its gradient and t the step. `weight_decay` joins g, unless the formula says otherwise or the
options have `decoupled`. In `AdamW`, `Lion`, `Muon` and `Adafactor` it shrinks p. State is f32 and has the names that checkpoints use.
Parts of it exist only with the option that needs them, such as `momentum` or `amsgrad`.

| optimizer | options | state | formula | PyTorch |
|---|---|---|---|---|
{optimizers}
`LBFGS` is called with a function that builds the loss, and evaluates it several times in a step.

## Schedules

A schedule is a function from the step, counted from 0, to the learning rate or the momentum. PyTorch's classes are those of
`torch.optim.lr_scheduler`. `Plateau` is a class: `step(metric)` returns the rate, as `ReduceLROnPlateau`.

| schedule | value | PyTorch |
|---|---|---|
{schedules}"""

# ---- Solvers

CONFIG_PAGE = "docs/reference/solvers.md"

# ---- File formats

# Files of the code that read or write files.
READERS_AND_WRITERS = {
    "lib/cl/disk_cache.cpp", "lib/cl/kernel_source.cpp", "lib/cl/quirk_file.cpp", "lib/cl/trace.cpp", "lib/cl/capability_probe.cpp",
    "lib/cl/vector_rate.cpp", "lib/data/byte_source.cpp", "lib/data/cifar10.cpp", "lib/data/idx.cpp", "lib/data/text.cpp",
    "lib/data/csv_rows.cpp", "lib/data/image_decode.cpp", "lib/data/image_write.cpp", "lib/data/tokenizer.cpp", "lib/data/wav.cpp",
    "lib/io/npy.cpp", "lib/io/state_files.cpp", "lib/io/torch.cpp", "lib/io/zip.cpp", "lib/onnx/external_data.cpp", "lib/onnx/host_tensor.cpp", "lib/onnx/initializers.cpp", "lib/onnx/model.cpp", "lib/onnx/read.cpp", "lib/onnx/save.cpp", "lib/onnx/write.cpp",
    "tools/clnet_run.cpp", "tools/run_profile.cpp",
    "lib/exec/tune/tuning.cpp", "lib/io/safetensors.cpp", "lib/io/safetensors_header.cpp", "lib/pocl/notes.cpp", "lib/train/checkpoint.cpp",
    "lib/io/checkpoint.cpp", "lib/train/event_file.cpp", "lib/train/log_hooks.cpp", "tools/clnet_bench.cpp",
    "tools/clnet_train.cpp", "tools/clnet_train_log.cpp", "tools/report.cpp",
}

# {key} of FORMATS: (file, pattern of its value).
VALUES = {
    "checkpoint": ("lib/train/checkpoint.cpp", r'string_view format = "([^"]+)"'),
    "parts": ("lib/io/checkpoint.cpp", r'format = "([^"]+)"'),
    "program": ("lib/cl/disk_cache.cpp", r'string_view magic = "([^"]+)"'),
    "program_bytes": ("lib/cl/disk_cache.cpp", r"largest_entry = ([^;]+);"),
    "report": ("tools/report.h", r"report_version = (\d+);"),
    "image_magic": ("lib/data/idx.cpp", r"image_magic = (0x\w+)"),
    "label_magic": ("lib/data/idx.cpp", r"label_magic = (0x\w+)"),
    "cifar_bytes": ("lib/data/cifar10.cpp", r"most_batch_bytes = ([^;]+);"),
    "image_bytes": ("lib/data/image_decode.cpp", r"most_file_bytes = ([^;]+);"),
    "npy_header_bytes": ("lib/io/npy_format.cpp", r"most_npy_header = ([^;]+);"),
    "pickle_bytes": ("lib/io/torch.cpp", r"most_pickle_bytes = ([^,]+),"),
    "torch_format": ("lib/io/torch.cpp", r"newest_torch_format = (\d+);"),
    "torch_small_bytes": ("lib/io/torch.cpp", r"most_small_bytes = ([^,]+),"),
    "torch_growth": ("lib/io/torch.cpp", r"most_growth = (\d+);"),
    "tuning": ("lib/exec/tune/tuning.cpp", r'tuning_format = "([^"]+)"'),
    "quirks": ("lib/cl/quirk_file.cpp", r'quirks_format = "([^"]+)"'),
    "probe": ("lib/cl/capability_probe.cpp", r'probe_format = "([^"]+)"'),
    "rate": ("lib/cl/vector_rate.cpp", r'rate_format = "([^"]+)"'),
    "notes_begin": ("lib/pocl/notes.cpp", r'notes_begin = "([^"]+)"'),
    "notes_version": ("lib/pocl/notes.cpp", r'notes_version = "([^"]+)"'),
    "bench": ("tools/clnet_bench.cpp", r'bench_format = "([^"]+)"'),
    "train_log": ("tools/clnet_train_log.cpp", r'log_format = "([^"]+)"'),
    "csv_bytes": ("lib/data/csv_rows.cpp", r"most_csv_bytes = ([^;]+);"),
    "wav_bytes": ("lib/data/wav.cpp", r"most_wav_bytes = ([^;]+);"),
    "tokenizer_bytes": ("lib/data/tokenizer.cpp", r"most_tokenizer_bytes = ([^;]+);"),
    "tokenizer": ("lib/data/tokenizer.cpp", r'tokenizer_format = "([^"]+)"'),
    "tokenizer_version": ("lib/data/tokenizer.cpp", r'tokenizer_version = "([^"]+)"'),
    "text_bytes": ("lib/data/text.cpp", r"most_text_bytes = ([^;]+);"),
    "tuning_bytes": ("lib/exec/tune/tuning.cpp", r"largest_file = ([^;]+);"),
    "quirk_bytes": ("lib/cl/quirk_file.cpp", r"largest_quirk_file = ([^;]+);"),
    "trial_bytes": ("lib/cl/capability_probe.cpp", r"largest_probe_file = ([^;]+);"),
    "rate_bytes": ("lib/cl/vector_rate.cpp", r"largest_rate_file = ([^;]+);"),
    "notes_bytes": ("lib/pocl/notes.cpp", r"largest_notes = ([^;]+);"),
    "log_bytes": ("tools/clnet_train_log.cpp", r"most_bytes = ([^;]+);"),
    "kernel_bytes": ("lib/cl/kernel_source.cpp", r"largest_source = ([^;]+);"),
}

FORMATS = """\
# File formats

This page lists every file that clnet and its programs write or read, with version and checks. {written}

A file is written beside its target and then renamed: a crash leaves the old file or the new one. Logs and traces grow
instead. A damaged file of yours throws a `FileError` with path and reason before anything changes. A damaged file in a cache is
ignored.

## Weights

| file | layout | version |
|---|---|---|
| `*.safetensors` | length of the header (8 bytes, little-endian), header (JSON), tensors | that of [safetensors](https://github.com/huggingface/safetensors) |
| `*.pt`, `*.pth`, `*.ckpt`, `*.bin` | a zip archive of `torch.save()` since PyTorch 1.6: `data.pkl` (a pickle), `data/<key>` for each storage, `byteorder`, `version` | archives of version 1 to {torch_format}; 3 is written |
| `*.onnx` | a ModelProto of [ONNX](https://onnx.ai), operator sets 1 to 28, written 18 to 26; tensors may lie beside it, as in `*.onnx.data` | that of ONNX |
| `*.pb` of `onnx::load_tensor()` and `clnet-run` | a TensorProto, SequenceProto or (read only) OptionalProto of ONNX | that of ONNX |

- The header has dtype, shape and two offsets for each tensor, and texts by name in `__metadata__`.
- Dtypes: {safetensors_dtypes}. Modules of f32 round F64.
- In the data wider dtypes come first, so that all are aligned.
- Reading checks every size against the length of the file before it allocates. Unknown fields, names that appear twice, gaps,
  overlaps and bytes behind the last tensor are refused.
- Of a `.pt` file nothing is executed. Its pickle (at most {pickle_bytes}) may refer to tensors, dtypes and
  `OrderedDict`; all else is refused by name. The tensors take at most {torch_small_bytes} and {torch_growth} times the file. Big-endian
  files, TorchScript and files from before PyTorch 1.6 are refused.
- `clnet-train --save` adds the metadata `format` (`pt`), the network's name and, of a text, the alphabet.

## Checkpoints

| file | layout | version |
|---|---|---|
| `checkpoint.safetensors` in the folder of `--checkpoint` | safetensors with tensors `model.*` and `optimizer.*`, and `hook0.*`, `metric0.*` and so on of hooks and metrics | `{checkpoint}` (metadata `format`) |
| the file of `io::save_checkpoint()` | safetensors with tensors `<part>.*` | `{parts}` (metadata `clnet.format`) |

- Metadata hold the position (steps, epochs, losses, a stream's state), the random state, the settings of the run, the rates so far and the kernels in
  use. Floating numbers are hexadecimal and return exactly.
- Reading checks the version, and a CRC-32 over metadata and tensors (`checksum`).
- Files of `io::save_checkpoint()` have the names of parts in `clnet.parts`. The random state, the kernels in use and the CRC-32 also
  have names with `clnet.`; other metadata are the caller's.
- Data set, normalization, number of samples, shuffle, batch size, seed, precision, augmentation, clipping and schedules of rate and
  momentum must be those of the run. Others are refused with the reason. With more steps than before, [schedules may
  differ](../guide/saving.md#checkpoints).

## Data

clnet reads these files. It also writes `.npy`, `.npz`, WAV, PNG, BMP and tokenizers.

| file | layout | checks |
|---|---|---|
| `*-images-idx3-ubyte`, also `.gz` | IDX: magic number `{image_magic}`, count, rows, columns (big-endian), bytes | magic number, sizes, nothing behind the end |
| `*-labels-idx1-ubyte`, also `.gz` | IDX: magic number `{label_magic}`, count, bytes | the same; as many labels as images; labels below the number of classes |
| `data_batch_*.bin`, `test_batch.bin` | CIFAR-10: records of 1 label and 3x32x32 bytes | whole records, labels 0 to 9, at most {cifar_bytes} |
| PNG, JPEG | as libpng and libjpeg-turbo read them; EXIF orientation | sizes, a whole file, at most 2^27 pixels and {image_bytes} |
| BMP | headers from 40 bytes, 1 to 32 bits per pixel, uncompressed or in runs of indices | the same |
| a list of images (CSV) | rows of a path and a class, in quotes where they hold commas | two fields, a file at each path, at most {csv_bytes} |
| a list of boxes (CSV) | rows of a path, x1, y1, x2, y2 and a class, or a path and five empty fields | the same with six fields; coordinates to 10^6, boxes with an area |
| a text | bytes of any encoding | no zero byte, at most {text_bytes} |
| `*.npy` | NumPy's format 1.0, 2.0 or 3.0: magic, version, header (a dict), data | a header of at most {npy_header_bytes} with known keys, sizes, nothing behind the data |
| `*.npz` | a zip archive of `.npy` members, stored or deflated, zip64 | each name once, members apart, sizes, CRC-32; the arrays take at most 16 GiB of memory |
| a table (CSV) | rows of fields, in quotes where they hold separators | as many fields in each row, categories; at most {csv_bytes} and 2^28 fields |
| WAV | RIFF with `fmt ` and `data`: PCM of 8 to 32 bits, floats of 32 or 64, extensible | chunks within the file, whole frames, at most 64 channels, 2^28 samples and {wav_bytes} |
| the file of `Tokenizer::save()` | `{tokenizer} {tokenizer_version}`, then lines: `kind`, `lower`, `unknown`, tokens (hexadecimal), merges (two numbers each) | the version, counts, numbers, tokens of at most 64 bytes by merges; at most {tokenizer_bytes} |

NumPy's dtypes become clnet's: bool, i1, u1, i4, i8, f2 and f4 stay, i2 and u2 become i32, u4 and u8 become i64. f8 is f64, or f32 where asked for. Python
objects, texts and records are refused. bf16 is written as f4.

## Caches

These files are in `CLNET_CACHE_DIR`, else `$XDG_CACHE_HOME/clnet`, else `~/.cache/clnet`, and may be removed. Names of JSON
files end in a hash of the device's name and its driver's version. The first field, `for`, has device, driver, version of clnet and
state of its kernels. A file for others is ignored. `format` is the format with its version; older files lack it, and are of version 1. Another version is
ignored with one line.

| file | layout | checks |
|---|---|---|
| `programs/<hash>.clnet-program` | `{program}`, lengths of key and content (8 bytes each), key, compiled program, checksum | magic line, lengths, checksum, the whole key; at most {program_bytes} |
| `tuning-<device>.json` | `{tuning}`; `choices`: by operation, options and shapes the `solver` with its configuration, and `ms` | `for`; at most {tuning_bytes} |
| `quirks-<device>.json` | `{quirks}`; `broken`: operation, solver and reason; `limits` by name. The vector width is part of `for` | `for`, whole numbers; at most {quirk_bytes} |
| `matrix-units-<element>-<device>.json`, `sub-groups-<device>.json` | `{probe}`; `fault`: empty, or the reason | `for`; at most {trial_bytes} |
| `vector-rate-<device>.json` | `{rate}`; `16 lanes`: `full` or `half`; `for` has the device alone | `for`, the word; at most {rate_bytes} |

PoCL's own cache folder also has `clnet-kernels`: `{notes_begin}{notes_version}`, then a line for each kernel that clnet's processes
compiled, with ` failed` or ` crashed`
behind those that did not succeed. Another version, or above {notes_bytes}, begins anew. `*.lock` are empty files.

## Files of the programs

| option | layout | read by |
|---|---|---|
| `clnet-info --report FILE` | JSON; `report` is the version, {report} | `tools/dev/report_rows.py` |
| `clnet-bench --json FILE` | JSON: `format` (`{bench}`) and a list of `items` with `name`, `median_ms` and others | `clnet-bench --compare` |
| `clnet-train --log FILE` | a JSON object a line: `format` (`{train_log}`), then `step` and `loss`, or `epoch` with its figures | `--resume`, which cuts lines behind the checkpoint; at most {log_bytes} |
| `clnet-train --tensorboard DIR`, `train::tensorboard()` | `events.out.tfevents.*`: records of TFRecord with masked CRC-32C, `Event` messages | TensorBoard; a resumed run adds a file |
| `clnet-train --csv FILE`, `train::csv()` | a line of names, a row per epoch | a resumed run, which keeps the rows that its checkpoint covers; at most 256 MiB |
| `clnet-train --plot FILE` | SVG | |
| `clnet-train --sheet FILE` | PNG, or BMP by the ending | |
| `CLNET_TRACE`, `clnet-run --trace FILE`, `clnet-train --trace FILE` | Chrome's trace events (JSON), complete after each write | [Perfetto](https://ui.perfetto.dev) |

`CLNET_KERNEL_DIR` names a folder of kernels in OpenCL C that replace the built-in ones, at most {kernel_bytes} each.
"""

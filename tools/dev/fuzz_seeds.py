#!/usr/bin/env python3
"""Writes small sound files from which the fuzzers of tests/readers start: fuzz_seeds.py FOLDER makes a folder for each reader."""

import gzip
import io
import json
import pathlib
import re
import struct
import sys
import zipfile
import zlib


def safetensors(tensors, metadata):
    """tensors: name to (dtype, shape, bytes)."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def idx(magic, dimensions, data):
    return struct.pack(f">{1 + len(dimensions)}I", magic, *dimensions) + data


def pair(labels, images):
    return struct.pack("<H", len(labels)) + labels + images


def png(width, height, colour_type, rows, exif=None):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    extra = chunk(b"eXIf", exif) if exif else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def bmp(width, height, bits, palette, rows, compression=0):
    start = 54 + len(palette)
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, len(palette) // 4, 0)
    return struct.pack("<2sIHHI", b"BM", start + len(rows), 0, 0, start) + header + palette + rows


def npy(dtype, shape, content):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + content


def npz(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content, kind in members:
            archive.writestr(zipfile.ZipInfo(name), content, kind)
    return stream.getvalue()


def wav(kind, channels, bits, data):
    form = struct.pack("<HHIIHH", kind, channels, 8000, 1000 * channels * bits, channels * bits // 8, bits)
    return b"RIFF" + struct.pack("<I", 28 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data


def torch_pickles():
    """What torch.save() writes for a tensor in a dict, and one within it; without PyTorch."""
    import collections
    import pickle
    import types

    def rebuild(*_):
        return None

    class FloatStorage:
        pass

    class Tensor:
        def __reduce__(self):
            return rebuild, (FloatStorage(), 0, (2, 1), (1, 1), False, collections.OrderedDict())

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            return ("storage", FloatStorage, "0", "cpu", 2) if isinstance(thing, FloatStorage) else None

    for name, thing, module in (("_rebuild_tensor_v2", rebuild, "torch._utils"), ("FloatStorage", FloatStorage, "torch")):
        sys.modules.setdefault(module, types.ModuleType(module))
        thing.__module__, thing.__qualname__, thing.__name__ = module, name, name
        setattr(sys.modules[module], name, thing)
    result = []
    for protocol in (2, 4):
        for state in ({"w": Tensor()}, {"model": collections.OrderedDict(w=Tensor(), b=Tensor()), "epoch": 3, "loss": [0.5, None, True, "x"]}):
            stream = io.BytesIO()
            Pickler(stream, protocol).dump(state)
            result.append(stream.getvalue())
    return result


def varint(number):
    number &= 2**64 - 1
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def message(*fields):
    """A protobuf message of fields (number, value): an integer, a float, or text and other messages as bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def onnx_tensor(name, extents, kind, content):
    return message(*[(1, extent) for extent in extents], (2, kind), (8, name), (9, content))


def onnx_integers(name, values):
    return onnx_tensor(name, [len(values)], 7, struct.pack(f"<{len(values)}q", *values))


def onnx_attribute(name, value):
    """Of an integer, a float, a text, a list of integers, or a graph as bytes."""
    if isinstance(value, list):
        return message((1, name), *[(8, each) for each in value], (20, 7))
    field, kind = {int: (3, 2), float: (2, 1), str: (4, 3), bytes: (6, 5)}[type(value)]
    return message((1, name), (field, value), (20, kind))


def onnx_node(operator, inputs, outputs, domain="", **attributes):
    """Inputs and outputs are names in one text; - is one that is left out."""
    fields = [(1, name.strip("-")) for name in inputs.split()] + [(2, name) for name in outputs.split()] + [(4, operator)]
    fields += [(5, onnx_attribute(name, value)) for name, value in attributes.items()]
    return message(*fields, *([(7, domain)] if domain else []))


def onnx_value(name, kind, extents):
    shape = message(*[(1, message((2, extent) if isinstance(extent, str) else (1, extent))) for extent in extents])
    return message((1, name), (2, message((1, message((1, kind), (2, shape))))))


def onnx_graph(nodes, inputs, outputs, initializers=()):
    """Inputs: (name, type, extents)."""
    fields = [(1, node) for node in nodes] + [(2, "g")] + [(5, tensor) for tensor in initializers]
    fields += [(11, onnx_value(*each)) for each in inputs] + [(12, onnx_value(name, 1, [])) for name in outputs]
    return message(*fields)


def onnx_model(graph, opset=18, functions=()):
    sets = [(8, message((1, ""), (2, opset))), (8, message((1, "own"), (2, 1)))]
    return message((1, 8), (2, "seeds"), *sets, (7, graph), *[(25, function) for function in functions])


def onnx_models():
    """Networks of the reader's parts: weights, shapes on the host, control flow, functions, sequences and recurrent layers."""
    node = onnx_node
    x = ("x", 1, ["n", 4])
    image = ("x", 1, [1, 2, 5, 5])
    turn = onnx_graph(
        [node("Add", "v one", "w"), node("Identity", "go", "more")], [("i", 7, []), ("go", 9, []), ("v", 1, [])], ["more", "w", "w"])
    step = onnx_graph([node("Add", "s e", "t")], [("s", 1, [4]), ("e", 1, [4])], ["t", "t"])
    branches = {"then_branch": onnx_graph([node("Neg", "x", "a")], [], ["a"]), "else_branch": onnx_graph([node("Abs", "x", "b")], [], ["b"])}
    one = onnx_tensor("one", [], 1, struct.pack("<f", 1))
    own = message((1, "Own"), (4, "p"), (5, "q"), (7, node("Relu", "p", "q")), (9, message((2, 18))), (10, "own"))
    weights = [onnx_tensor("w", [3, 2, 3, 3], 1, bytes(216)), onnx_tensor("b", [3], 1, bytes(12))]
    lstm = [onnx_tensor("w", [1, 12, 4], 1, bytes(192)), onnx_tensor("r", [1, 12, 3], 1, bytes(144))]
    return [
        onnx_model(onnx_graph([node("Conv", "x w b", "a", pads=[1, 1, 1, 1]), node("Relu", "a", "y")], [image], ["y"], weights)),
        onnx_model(onnx_graph(
            [node("Shape", "x", "s"), node("Gather", "s i", "n"), node("Concat", "n j", "t", axis=0), node("Reshape", "x t", "a"),
             node("Expand", "a e", "b"), node("Slice", "b i j", "c"), node("ConstantOfShape", "t", "d"), node("Tile", "d e", "y")],
            [x], ["y", "c"], [onnx_integers("i", [0]), onnx_integers("j", [4]), onnx_integers("e", [2, 1])])),
        onnx_model(onnx_graph([node("Loop", "m - x", "y z", body=turn), node("If", "c", "o", **branches)], [x], ["y", "z", "o"],
                              [one, onnx_integers("m", [3]), onnx_tensor("c", [], 9, b"\1")])),
        onnx_model(onnx_graph([node("Scan", "z x", "f y", body=step, num_scan_inputs=1)], [("x", 1, [2, 4])], ["y"],
                              [onnx_tensor("z", [4], 1, bytes(16))])),
        onnx_model(onnx_graph([node("Own", "x", "y", "own")], [x], ["y"]), 18, [own]),
        onnx_model(onnx_graph([node("LSTM", "x w r", "y", hidden_size=3)], [("x", 1, [2, 1, 4])], ["y"], lstm), 14),
        onnx_model(onnx_graph(
            [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s i", "a"), node("Pad", "a p", "b"), node("TopK", "b k", "c d"),
             node("OneHot", "d j v", "e"), node("Resize", "x - - z", "f"), node("Range", "u u u", "g"), node("Split", "x", "h l", num_outputs=2),
             node("Einsum", "x x", "m", equation="ij,kj->ik")],
            [x], ["c", "e", "f", "g", "h", "m"],
            [onnx_tensor("i", [], 7, bytes(8)), onnx_integers("p", [0, 1, 0, 1]), onnx_integers("k", [2]), onnx_integers("j", [5]),
             onnx_tensor("v", [2], 1, struct.pack("<2f", 0, 1)), onnx_integers("z", [2, 8]), onnx_tensor("u", [], 7, struct.pack("<q", 3))])),
        onnx_model(onnx_graph(
            [node("MaxPool", "x", "a", kernel_shape=[2, 2], ceil_mode=1), node("GlobalAveragePool", "a", "b"), node("Flatten", "b", "c"),
             node("Softmax", "c", "d", axis=-1), node("ReduceSum", "d", "e"), node("Cast", "e", "f", to=7),
             node("AveragePool", "x", "h", kernel_shape=[3, 3], auto_pad="SAME_UPPER"), node("Upsample", "h o", "y", mode="nearest")],
            [image], ["f", "y"], [onnx_tensor("o", [4], 1, struct.pack("<4f", 1, 1, 2, 2))]), 9),
    ]


def onnx_operators():
    """A network of one node for each operator of the reference."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/onnx.md"
    weights = [onnx_tensor("w", [2, 2, 2, 2], 1, bytes(64)), onnx_integers("i", [1, 2])]
    names = re.findall(r"^\| ([A-Z]\w+) \|", page.read_text(), re.MULTILINE)
    return [
        onnx_model(onnx_graph([node], [("x", 1, [2, 2, 4, 4])], ["y"], weights))
        for name in names
        for node in (onnx_node(name, "x w i", "y z"), onnx_node(name, "x i", "y", axis=1, kernel_shape=[2, 2], mode="linear"))
    ]


# Of 8 x 8 grey pixels.
JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb004300100b0c0e0c0a100e0d0e1211101318281a181616183123251d283a333d3c3933383740"
    "485c4e404457453738506d51575f626768673e4d71797064785c656763ffc0000b080008000801011100ffc400140001000000000000000000000000"
    "00000004ffc40014100100000000000000000000000000000000ffda0008010100003f000bffd9"
)


def main():
    folder = pathlib.Path(sys.argv[1])
    labels, images = idx(0x801, [3], b"\1\2\0"), idx(0x803, [3, 2, 2], bytes(range(12)))
    position = {
        "format": "clnet checkpoint 2", "steps": "3", "epochs": "1", "epoch steps": "0", "epoch loss": "0x0p+0", "stale epochs": "0",
        "random seed": "1", "random offset": "2", "batch size": "8", "samples": "24", "shuffle": "1", "seed": "0", "dataset": "d",
        "normalization": "n", "rates": "the optimizer's own", "best loss": "0x1p+0", "checksum": "00000000",
    }
    state = {
        "model.0.weight": ("F32", [1, 2], bytes(8)), "model.0.bias": ("F32", [1], bytes(4)),
        "optimizer.steps": ("I64", [], bytes(8)), "optimizer.learning_rate": ("F32", [], bytes(4)),
    }
    parts = {
        "clnet.format": "parts 1", "clnet.parts": "model,step,rate", "clnet.random_seed": "1", "clnet.random_offset": "2",
        "clnet.solvers": json.dumps({"for": "device", "choices": {}}), "clnet.checksum": "00000000", "run": "seven",
    }
    parts_state = {
        "model.0.weight": ("F32", [1, 2], bytes(8)), "model.0.bias": ("F32", [1], bytes(4)), "step.value": ("I64", [], bytes(8)),
        "rate.value": ("F32", [3], bytes(12)),
    }
    quirks = {"for": "device", "broken": [{"op": "matmul", "solver": "cpu", "reason": "wrong"}], "limits": {"local_memory": 1}}
    seeds = {
        "safetensors": [
            safetensors({"w": ("F32", [2, 3], bytes(24)), "b": ("BF16", [3], bytes(6)), "z": ("BOOL", [0], b"")}, {"format": "pt"}),
            safetensors({"d": ("F64", [2], bytes(16)), "i": ("I64", [], bytes(8)), "u": ("U8", [1], b"\7")}, {}),
        ],
        "idx": [pair(labels, images), pair(gzip.compress(labels), gzip.compress(images))],
        "cifar": [b"\3" + bytes(3072)],
        "checkpoint": [safetensors(state, position)],
        "parts": [safetensors(parts_state, parts)],
        "tuning": [
            json.dumps({"for": "device", "choices": {"problem": {"solver": "cpu", "ms": 1.5}}}).encode(), json.dumps(quirks).encode(),
        ],
    }
    seeds["image"] = [
        png(2, 2, 2, b"\0abcdef" * 2), png(3, 1, 0, b"\0abc"), bmp(2, 1, 24, b"", b"abcdef\0\0"), bmp(3, 1, 8, bytes(8), b"\0\1\0\0"), JPEG,
        bmp(3, 2, 8, bytes(8), b"\3\1\0\0\0\3\0\1\1\0\0\1", 1), bmp(3, 2, 4, bytes(8), b"\3\x10\0\2\1\0\1\x10\0\1", 2),
        png(3, 2, 0, b"\0abc" * 2, struct.pack(">2sHIHHHIHxxI", b"MM", 42, 8, 1, 0x112, 3, 1, 6, 0)),
        b".,1,2,3,4,a\n.,,,,,\n", b".,a\n",
    ]
    arrays = [npy("<f4", "(2, 3)", bytes(24)), npy(">i2", "(2,)", b"\1\2\3\4"), npy("|b1", "()", b"\1")]
    seeds["npy"] = arrays
    seeds["npz"] = [
        npz([("a.npy", arrays[0], zipfile.ZIP_STORED), ("b.npy", arrays[1], zipfile.ZIP_DEFLATED)]), npz([]), arrays[0],
        zlib.compress(arrays[0])[2:-4],
    ]
    seeds["csv"] = [b"a,b,c\n1,2.5,x\n,-3e2,\"y, \"\"z\"\"\"\n", b"1,2\r\n3,4\r\n"]
    seeds["tokenizer"] = [
        b"clnet tokenizer 1\nkind bpe\nlower 0\nunknown 0\ntokens 0\nmerges 2\n97 98\n256 99\n",
        b"clnet tokenizer 1\nkind words\nlower 1\nunknown 1\ntokens 2\n616263\n2c\nmerges 0\n",
    ]
    seeds["wav"] = [wav(1, 2, 16, bytes(16)), wav(3, 1, 32, bytes(8)), wav(1, 1, 24, bytes(6))]
    pickles = torch_pickles()
    seeds["torch"] = pickles + [
        npz([("archive/data.pkl", pickles[0], kind), ("archive/data/0", bytes(8), kind), ("archive/version", b"3", zipfile.ZIP_STORED)])
        for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    ]
    tensors = [onnx_tensor("t", [2], 1, bytes(8)), message((1, 3), (2, 7), (7, 1), (7, 2), (7, 3)), message((1, 2), (2, 10), (5, 1), (5, 2))]
    seeds["onnx"] = onnx_models() + onnx_operators()
    seeds["onnx_tensor"] = [*tensors, message((1, "s"), (2, 1), (3, tensors[0]), (3, tensors[1]))]
    seeds["programs"] = [b"clnet-program-1\n" + struct.pack("<QQ", 3, 4) + b"keybody"]
    for reader, files in seeds.items():
        (folder / reader).mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(files):
            (folder / reader / f"seed-{number}").write_bytes(content)


if __name__ == "__main__":
    main()

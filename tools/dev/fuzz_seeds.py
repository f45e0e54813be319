#!/usr/bin/env python3
"""Writes small sound files from which the fuzzers of tests/readers start: fuzz_seeds.py FOLDER makes a folder for each reader."""

import gzip
import io
import json
import pathlib
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
    for reader, files in seeds.items():
        (folder / reader).mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(files):
            (folder / reader / f"seed-{number}").write_bytes(content)


if __name__ == "__main__":
    main()

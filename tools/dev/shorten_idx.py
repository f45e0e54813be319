#!/usr/bin/env python3
"""Keeps the first images and labels of a folder of IDX files, for quick runs.

shorten_idx.py SOURCE TARGET COUNT: every *-ubyte.gz of SOURCE, cut to COUNT items, as plain IDX files in TARGET.
"""

import gzip
import pathlib
import struct
import sys

source, target, count = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
target.mkdir(parents=True, exist_ok=True)
for path in sorted(source.glob("*-ubyte.gz")):
    data = gzip.decompress(path.read_bytes())
    rank = data[3]
    extents = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    item = (len(data) - 4 - 4 * rank) // extents[0]
    kept = min(count, extents[0])
    body = data[4 + 4 * rank:][:kept * item]
    (target / path.stem).write_bytes(data[:4] + struct.pack(f">{rank}I", kept, *extents[1:]) + body)

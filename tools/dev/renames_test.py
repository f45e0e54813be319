#!/usr/bin/env python3
"""Tests of renames.py."""

import json
import unittest

import renames
from peers.taken import hash_of
from renames import ROOT, Renames, differences

TABLE = """\
# a comment
solver matmul cpu_packed packed_cpu
variable CLNET_OLD CLNET_NEW
value CLNET_NEW always force
kernel conv_cpu_pack conv_pack_cpu
kernel reduce_cpu.cl/reduce_rows reduce_rows_cpu
kernel reduce_gpu.cl/reduce_rows reduce_rows_gpu
macro STREAM STORES
file kernels/conv/conv_cpu_pack.cl kernels/conv/conv_pack_cpu.cl
file kernels/stream.clh kernels/stores.clh
"""


class Test(unittest.TestCase):
    def setUp(self):
        self.renames = Renames(TABLE)

    def test_texts(self):
        self.assertEqual(self.renames.text('#include "stream.clh"\n#define STREAM 1\n#define STREAMS conv_cpu_pack(x)\n'),
                         '#include "stores.clh"\n#define STORES 1\n#define STREAMS conv_pack_cpu(x)\n')

    def test_solvers(self):
        self.assertEqual(self.renames.solver("matmul:cpu_packed{lanes=8}"), "matmul:packed_cpu{lanes=8}")
        self.assertEqual(self.renames.solver("conv2d:cpu_packed"), "conv2d:cpu_packed")

    def test_kinds_of_kernels(self):
        self.assertEqual(self.renames.kind("conv_cpu_pack{lanes=8}", "cpu"), "conv_pack_cpu{lanes=8}")
        self.assertEqual(self.renames.kind("reduce_rows:4", "gpu"), "reduce_rows_gpu:4")
        self.assertEqual(self.renames.kind("reduce_rows", "cpu"), "reduce_rows_cpu")

    def test_limits(self):
        text = renames.offline_limits.HEAD + "\nkernel  h100\nconv_cpu_pack 27/100\nmatmul 9/70\n"
        limits = renames.offline_limits.Limits.parse(self.renames.gpu_limits(text))
        self.assertEqual({name for name, _ in limits.kernels}, {"conv_pack_cpu", "matmul"})

    def test_ledgers(self):
        taken = {"solvers": ["matmul:cpu_packed", "matmul:direct"], "kernels": {"conv_cpu_pack.cl": "12"}}
        entry = {**dict.fromkeys(renames.ledger.FIELDS), "item": "matmul-64", "peer": "pytorch", "ratio": 2.0, "hash": hash_of(taken)}
        text = self.renames.ledger(json.dumps({"format": 1, "class": "avx2", "taken": {hash_of(taken): taken}, "entries": [entry]}))
        whole = json.loads(text)
        self.assertIsNone(renames.ledger.problem_of(whole, "avx2"))
        self.assertEqual(whole["taken"][whole["entries"][0]["hash"]],
                         {"solvers": ["matmul:direct", "matmul:packed_cpu"], "kernels": {"conv_pack_cpu.cl": "12"}})

    def test_faults(self):
        for text in ("solver matmul cpu\n", "name a b\n", "macro A B\nmacro A C\n"):
            with self.assertRaises(ValueError):
                Renames(text)

    def test_differences(self):
        self.assertEqual(list(differences({"a": "1\n", "b": "1\n2\n"}, {"b": "1\n3\n", "c": ""})),
                         ["a: is missing", "b:2: 3; by lib/base/renames.txt 2", "c: is new"])

    def test_own_table(self):
        own = Renames.read()
        olds = {*own.words, *(solver for _, solver in own.solvers)}
        self.assertFalse(olds & {*own.words.values(), *own.solvers.values()}, "a new name is an old one, too")
        self.assertEqual([new for new in own.files.values() if not (ROOT / new).is_file()], [])
        self.assertEqual([old for old in own.files if (ROOT / old).exists()], [])


if __name__ == "__main__":
    unittest.main()

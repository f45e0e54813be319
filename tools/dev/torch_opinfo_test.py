#!/usr/bin/env python3
"""Tests of what torch_opinfo.py does without torch."""

import json
import random
import struct
import unittest

from torch_opinfo import Skip, drawn, error, safetensors, written


class Value:
    """Plays a tensor."""


class Test(unittest.TestCase):
    def test_safetensors(self):
        data = safetensors({"in.a0": ("F32", (2, 1), b"12345678"), "out.y0": ("BOOL", (), b"\1")})
        length = struct.unpack("<Q", data[:8])[0]
        self.assertEqual(length % 8, 0)
        self.assertEqual(json.loads(data[8:8 + length]), {
            "in.a0": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
            "out.y0": {"dtype": "BOOL", "shape": [], "data_offsets": [8, 9]}})
        self.assertEqual(data[8 + length:], b"12345678\1")

    def test_arguments(self):
        tensors, first, second = [], Value(), Value()

        def as_json(value):
            return written(value, tensors, lambda one: isinstance(one, Value), lambda one: getattr(one, "dtype", None))
        self.assertEqual(as_json([first, (second, None, 2)]), [{"tensor": "a0"}, [{"tensor": "a1"}, None, 2]])
        self.assertEqual(tensors, [first, second])
        self.assertEqual(as_json([True, 1.5, float("-inf"), "mean"]), [True, 1.5, "-inf", "mean"])
        self.assertEqual(as_json([slice(1, None), Ellipsis]), [{"slice": [1, None, None]}, {"ellipsis": True}])
        named = type("Dtype", (), {"dtype": "float64"})()
        self.assertEqual(as_json(named), {"dtype": "f32"})
        named.dtype = "complex128"
        for value in (named, 1j, object()):
            with self.assertRaises(Skip):
                as_json(value)

    def test_draws(self):
        samples = list(range(100))
        self.assertEqual(drawn(samples, 0, random.Random(1)), samples)
        self.assertEqual(drawn(samples[:3], 8, random.Random(1)), [0, 1, 2])
        some = drawn(samples, 8, random.Random(1))
        self.assertEqual(some, sorted(set(some)))
        self.assertEqual(len(some), 8)
        self.assertEqual(some, drawn(samples, 8, random.Random(1)))
        self.assertNotEqual(some, drawn(samples, 8, random.Random(2)))

    def test_errors(self):
        inf, nan = float("inf"), float("nan")
        self.assertEqual(error([], []), 0)
        self.assertEqual(error([0.5], [0.25]), 0.25)
        self.assertEqual(error([9, 5], [10, 5]), 0.1)
        self.assertEqual(error([inf, nan, 1], [inf, nan, 1]), 0)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Tests the table of compare_onnx.py."""
import unittest

from compare_onnx import name_of, row_of


class Rows(unittest.TestCase):
    def test_ratios_are_of_medians_and_of_best_times(self):
        row = row_of("net", {"clnet": [[4, 3], [2, 1], [3, 2]], "onnxruntime": [[6, 5], [3, 3]]}, {"difference": 1e-6})
        self.assertEqual(row, ["net", "3.00", "1.00", "4.50", "3.00", "1.50", "3.00", "–", "–", "–", "–", "", "1.0e-06"])

    def test_bars_depend_on_the_time_of_onnxruntime(self):
        slow = row_of("net", {"clnet": [[10, 10]], "onnxruntime": [[9, 9]], "openvino": [[8.5, 8.5]]}, {})
        self.assertEqual(slow[-2:], ["below onnxruntime", "–"])
        fast = row_of("net", {"clnet": [[1, 1]], "onnxruntime": [[0.6, 0.6]], "openvino": [[0.4, 0.4]]}, {})
        self.assertEqual(fast[-2], "below openvino")

    def test_models_are_named_by_file_or_folder(self):
        self.assertEqual(name_of("a/net.onnx"), "net")
        self.assertEqual(name_of("a/net/model.onnx"), "net")


if __name__ == "__main__":
    unittest.main()

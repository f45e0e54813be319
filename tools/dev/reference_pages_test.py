#!/usr/bin/env python3
"""Checks that reference_pages.py reads declarations, and sees what its text lacks."""

import unittest

import reference_pages
from reference_pages import config_problems, constructor, defaults, fields, layer_page, layers_in, options_of, size, split, unknown_files
from reference_text import LAYER_PAGES, READERS_AND_WRITERS

HEADER = """
struct ConvOptions {
  Pair stride = 1;           ///< a comment; with marks, and = 2
  std::optional<double> eps = std::nullopt;
  double low = 0, high = 1e-3;
  std::function<Tensor(const Tensor&, int)> function = nullptr;
  PadMode mode = PadMode::zeros;
  Tensor lengths{};
  bool operator==(const ConvOptions&) const = default;
};
/// A base.
class CLNET_API Convolution : public Module {
 protected:
  Convolution(std::string kind, int a, int b, int c);
};
/// Of {N, C}.
class CLNET_API Conv : public Convolution {
 public:
  Conv(const Conv& other);
  Conv(std::int64_t in, std::int64_t out, const ConvOptions& options = {}) : Conv(in, out, 1, options) {}
  Conv(std::int64_t in, std::int64_t out, std::integral auto size, const ConvOptions& options = {})
      : Convolution("Conv", in, out, size) {}
  Conv(std::int64_t in, std::int64_t out, std::integral auto size, Pair stride, const ConvOptions& options = {});
};
class CLNET_API Activation : public Module {
 public:
  Activation(std::string name, std::function<Tensor(const Tensor&)> function);
};
CLNET_API Activation Softplus(double beta = 1, double threshold = 20);
CLNET_API Tensor no_layer(double x);
"""
PAGE = {"path": "docs/reference/layers.md", "title": "Layers", "introduction": "About. {written}\n", "headers": (("conv", "Convolutions"),),
        "parameters": "## Parameters\n"}


class Declarations(unittest.TestCase):
    def test_split(self):
        self.assertEqual(split("int a, std::map<int, int> b = {1, 2}, f(c, d)"), ["int a", "std::map<int, int> b = {1, 2}", "f(c, d)"])

    def test_fields(self):
        self.assertEqual(options_of(HEADER)["ConvOptions"], [("stride", "1"), ("eps", "none"), ("low", "0"), ("high", "1e-3"), ("function", "none"),
                                                             ("mode", "zeros"), ("lengths", "none")])
        self.assertEqual(defaults(fields("bool bias = true;")), "`bias = true`")
        with self.assertRaises(SystemExit):
            fields("int *;")

    def test_constructor(self):
        body = HEADER[HEADER.index("class CLNET_API Conv :"):HEADER.index("class CLNET_API Activation")]
        self.assertEqual([name for name, _, _ in constructor("Conv", body)], ["in", "out", "size", "options"])

    def test_layers(self):
        found = layers_in(HEADER, options_of(HEADER))
        self.assertEqual({name: layer.call for name, layer in found.items()},
                         {"Convolution": "Convolution()", "Conv": "Conv(in, out, size)", "Activation": "Activation(name, function)",
                          "Softplus": "Softplus(beta = 1, threshold = 20)"})
        self.assertEqual(found["Conv"].options[0], ("stride", "1"))
        with self.assertRaises(SystemExit):
            layers_in(HEADER, {})

    def test_layer_page(self):
        text, known, missing = layer_page(PAGE, {"nn/conv.h": HEADER}, options_of(HEADER), "")
        self.assertIn("| `Conv(in, out, size)` | `stride = 1, eps = none, ", text)
        self.assertIn("| `Softplus(beta = 1, threshold = 20)` |  | `nn.Softplus` |\n", text)
        self.assertNotIn("`Convolution", text)
        self.assertIn("Convolution", known)
        self.assertEqual(missing, ["Conv", "Activation", "Softplus"])
        now = text.replace("<!-- end", "| `nn::Conv(1, 2, 3)` | `w {2, 1}` |\n<!-- end")
        again, _, missing = layer_page(PAGE, {"nn/conv.h": HEADER}, options_of(HEADER), now)
        self.assertEqual(again, now)
        self.assertEqual(missing, ["Activation", "Softplus"])


class Problems(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual([size(count) for count in (12, 1 << 16, 16 << 20, 1 << 31)], ["12 bytes", "64 KiB", "16 MiB", "2 GiB"])

    def test_files(self):
        known = dict.fromkeys(READERS_AND_WRITERS, "file::read(path, 1);")
        self.assertEqual(list(unknown_files(known)), [])
        self.assertIn("lib/a.cpp: reads or writes", next(unknown_files({**known, "lib/a.cpp": "std::ofstream out(path);"})))
        del known["lib/data/text.cpp"]
        self.assertIn("lib/data/text.cpp: reads and writes nothing", next(unknown_files(known)))

    def test_configurations(self):
        page = "# Solvers\n\n## Configurations\n\nSome `text`.\n\n| values | meaning |\n|---|---|\n| `m`, `n` | a `tile` |\n\n## Next\n"
        code = {"lib/ops/a.cpp": 'result.push_back({{"m", m}, {"n", 1}});'}
        self.assertEqual(list(config_problems(page, code)), [])
        self.assertIn("lacks `k`", next(config_problems(page, {**code, "lib/ops/b.cpp": 'config["k"]'})))
        self.assertIn("has `m`, and no solver", next(config_problems(page, {})))

    def test_optimizers(self):
        headers = {path: "" for path in ("optim/sgd.h", "optim/adam.h", "optim/adaptive.h", "optim/lbfgs.h", "optim/schedule.h")}
        with self.assertRaises(SystemExit) as caught:
            reference_pages.optimizer_page(headers, [])
        self.assertIn("SGD: has a formula", str(caught.exception))

    def test_pages_are_of_this_tree(self):
        for page in LAYER_PAGES:
            for name, _ in page["headers"]:
                self.assertTrue((reference_pages.ROOT / f"include/clnet/nn/{name}.h").exists())


if __name__ == "__main__":
    unittest.main()

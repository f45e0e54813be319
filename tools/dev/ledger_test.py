#!/usr/bin/env python3
"""Checks what ledger.py makes of entries, and which changes of kernels make them old."""
import contextlib
import copy
import io
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import ledger
from kernel_text import Kernels, chunks_of
from peers.items import parse
from peers.taken import hash_of, programs_of, taken_of

KERNEL = """// What it does.
#include "tile.clh"
#define SIDE(x) ((x) * 2)
kernel void product(IN(a), OUT(b), const int count) {
  for (int i = 0; i < count; ++i) {
#ifdef LONG
    add_tile(b, LOAD(a, SIDE(i)));
#else
    b[i] = fmax(a[i], 1.0f) * WIDTH + HEIGHT;
#endif
  }
}
"""
TILE = """// A tile.
#ifndef CLNET_TILE_CLH
#define CLNET_TILE_CLH
#include "common.clh"
static inline void add_tile(global float *b, const float value) { b[WIDTH] += scaled(value) * SCALE_OF(tile); }
static inline float unused(const float value) { return value * 3.0f; }
#endif
"""
COMMON = """#ifndef CLNET_COMMON_CLH
#define CLNET_COMMON_CLH
#define IN(x) global const float *x
#define OUT(x) global float *x
#define LOAD_f32(p, i) ((p)[i])
#define LOAD_f16(p, i) vload_half(i, p)
#define LOAD(p, i) CAT(LOAD_, TYPE)(p, i)
#define SCALE_OF(x) x##_scale
#define tile_scale 2.0f
static inline float scaled(const float value) { return value * 0.5f; }
static inline float logistic(const float value) { return 1.0f / (1.0f + exp(-value)); }
typedef struct {
  int first, last;
} range;
#endif
"""
LOG = """clnet: device 0:0 a device
clnet: matmul: solver outer_cpu refuses: its sums are of more than one product
clnet: matmul: solver cpu{lanes=8,rows=6}; instead of {lanes=8,rows=4} {lanes=4,rows=6}
clnet: reduce: solver direct
clnet: softmax: solver gpu{group=64}, as was measured
clnet: fusion: matmul, add over [32, 512], 1 to write
clnet: source of fused_rand_rand:
    1 | #include "common.clh"
    2 | kernel void fused_rand_rand(OUT(y)) { y[0] = scaled(LOAD(y, 0)); }
clnet: source of product:
    1 | #define EPILOGUE_BODY return logistic(value);
    2 | #define TYPE f32
    3 | // What it does.
    4 | kernel void product(IN(a)) { scaled(1.0f); }
clnet: program product built in 30 ms
       12 | no line of a program
clnet: source of sigmoid_elementwise:
    1 | #define LOAD(p, i) CAT(LOAD_, TYPE)(p, i)
    2 | kernel void sigmoid_elementwise(IN(x), OUT(y)) { y[0] = logistic(x[0]); }
"""


class Tree:
    """Kernel files in a folder of their own."""

    def __init__(self, root, common=COMMON, tile=TILE, kernel=KERNEL, name="product", header="tile.clh"):
        folder = pathlib.Path(root) / "kernels"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "matmul").mkdir(parents=True)
        (folder / "common.clh").write_text(common)
        (folder / "matmul" / header).write_text(tile)
        (folder / "matmul" / f"{name}.cl").write_text(kernel)
        self.kernels = Kernels(folder)


class Texts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.before = Tree(self.root).kernels.hash_of("product.cl")

    def after(self, name="product", **texts):
        return Tree(self.root, name=name, **texts).kernels.hash_of(name + ".cl")

    def test_names_and_comments_do_not_count(self):
        for what, texts in {
                "a comment": {"kernel": KERNEL.replace("// What it does.", "/* Something\nelse. */")},
                "a comment in a line": {"tile": TILE.replace("return value", "return /* three */ value")},
                "spaces": {"kernel": KERNEL.replace("  for (", "for(").replace("a[i], 1.0f", "a [ i ],\n 1.0f")},
                "a kernel's name": {"kernel": KERNEL.replace("product", "multiply")},
                "a function's name": {"tile": TILE.replace("add_tile", "put"), "kernel": KERNEL.replace("add_tile", "put")},
                "a variable's name": {"kernel": KERNEL.replace("count", "length").replace("int i", "int step").replace("i <", "step <")
                                      .replace("++i", "++step").replace("[i]", "[step]").replace("SIDE(i)", "SIDE(step)")},
                "a macro's name": {"kernel": KERNEL.replace("SIDE", "TWICE")},
                "a file's name": {"name": "multiply"},
                "a header's name": {"header": "block.clh", "tile": TILE.replace("TILE", "BLOCK"),
                                    "kernel": KERNEL.replace("tile.clh", "block.clh")},
                "a macro's parameter": {"common": COMMON.replace("SCALE_OF(x) x##", "SCALE_OF(l) l##")},
                "a header's guard": {"tile": TILE.replace("#ifndef CLNET_TILE_CLH\n#define CLNET_TILE_CLH\n", "").replace("#endif\n", "")},
                "what it does not call": {"tile": TILE.replace("3.0f", "4.0f")},
                "what nobody calls in all headers": {"common": COMMON.replace("1.0f / (", "2.0f / (")},
                "another order of definitions": {"common": "\n".join(COMMON.split("\n")[:2] + COMMON.split("\n")[2:11][::-1] +
                                                                  COMMON.split("\n")[11:])},
                "another definition": {"common": COMMON + "#define EXTRA 1\n"},
                "a line that goes on": {"kernel": KERNEL.replace("SIDE(x) ((x)", "SIDE(x) \\\n  ((x)")}}.items():
            with self.subTest(what):
                self.assertEqual(self.after(**texts), self.before)

    def test_what_counts(self):
        for what, texts in {
                "a loop": {"kernel": KERNEL.replace("++i", "i += 2")},
                "a loop's bound": {"kernel": KERNEL.replace("i < count", "i <= count")},
                "a condition": {"kernel": KERNEL.replace("#ifdef LONG", "#ifndef LONG")},
                "a function of OpenCL": {"kernel": KERNEL.replace("fmax", "fmin")},
                "a type": {"kernel": KERNEL.replace("const int count", "const long count")},
                "a macro": {"kernel": KERNEL.replace("(x) * 2", "(x) * 3")},
                "which variable": {"kernel": KERNEL.replace("fmax(a[i]", "fmax(b[i]")},
                "what it calls": {"tile": TILE.replace("+= scaled", "-= scaled")},
                "what that calls": {"common": COMMON.replace("value * 0.5f", "value * 0.25f")},
                "a macro with parts as its name": {"common": COMMON.replace("((p)[i])", "((p)[(i) + 1])")},
                "which of the host's defines": {"tile": TILE.replace("WIDTH", "HEIGHT")},
                "what a name's end leads to": {"common": COMMON.replace("2.0f", "3.0f")},
                "a header's macro": {"common": COMMON.replace("global const float *x", "global const float *restrict x")}}.items():
            with self.subTest(what):
                self.assertNotEqual(self.after(**texts), self.before)

    def test_pieces(self):
        names = [chunk.names for chunk in chunks_of(COMMON + "MAKE(a, b)\n#pragma unroll\nconstant float table[2] = {1, 2};\n"
                                                    "typedef float word __attribute__((aligned(4)));\n"
                                                    "__attribute__((always_inline)) static float f(int x) { if (x) { return g(x); } }\n"
                                                    "void g(int x) {\n#ifdef A\n  if (x) {\n#else\n  if (!x) {\n#endif\n  }\n}\nvoid h() {}\n")]
        self.assertEqual(names, [("IN",), ("OUT",), ("LOAD_f32",), ("LOAD_f16",), ("LOAD",), ("SCALE_OF",), ("tile_scale",), ("scaled",),
                                 ("logistic",), ("range",), ("MAKE", "a", "b"), (), ("table",), ("word",), ("f",), ("g",), ("h",)])

    def test_all_kernels_are_read(self):
        """No function of the tree is lost in another's piece: each header's is a definition of its own."""
        kernels = Kernels(ledger.ROOT / "kernels")
        for name in ("clnet_sigmoid", "LOAD", "VLOAD", "clnet_epilogue", "any_vector", "clnet_lanes_sum", "WITH_ROWS"):
            self.assertIn(name, kernels.definitions())
        self.assertGreater(len({kernels.hash_of(name) for name in kernels.texts if name.endswith(".cl")}), 80)
        self.assertIsNone(kernels.hash_of("no_such.cl"))
        self.assertIsNone(kernels.hash_of("no_such_function"))


class Taken(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.kernels = Tree(self.root).kernels
        self.taken = taken_of("matmul-64", LOG, self.kernels)

    def test_a_log(self):
        self.assertEqual(self.taken["solvers"], ["matmul:cpu{lanes=8,rows=6}", "reduce:direct", "softmax:gpu{group=64}"])
        # Of the file its own text counts, of generated code and of what the host defines the definitions that they name.
        self.assertEqual(list(self.taken["kernels"]), ["IN", "OUT", "logistic", "product.cl"])
        self.assertEqual([(title, len(lines)) for title, lines in programs_of(LOG)],
                         [("fused_rand_rand", 2), ("product", 4), ("sigmoid_elementwise", 2)])

    def test_random_numbers_count_where_they_are_the_work(self):
        self.assertIn("scaled", taken_of("rand-1m", LOG, self.kernels)["kernels"])

    def test_a_log_without_programs(self):
        with self.assertRaises(RuntimeError):
            taken_of("matmul-64", "clnet: reduce: solver direct\n", self.kernels)

    def test_the_hash(self):
        def changed(**parts):
            return hash_of({**self.taken, **parts})
        renamed = {"other_" + part: value for part, value in self.taken["kernels"].items()}
        self.assertEqual(changed(kernels=renamed), hash_of(self.taken))
        self.assertNotEqual(changed(kernels={**self.taken["kernels"], "product.cl": "0"}), hash_of(self.taken))
        self.assertNotEqual(changed(solvers=["matmul:cpu{lanes=4,rows=6}"]), hash_of(self.taken))

    def entry_is_old(self, **texts):
        hash = hash_of(self.taken)
        book = {**ledger.empty("avx2"), "taken": {hash: self.taken}, "entries": [entry_of("matmul-64", hash=hash)]}
        return ledger.is_old(book["entries"][0], book, Tree(self.root, **texts).kernels)

    def test_what_is_old(self):
        self.assertFalse(self.entry_is_old())
        self.assertFalse(self.entry_is_old(name="multiply", kernel=KERNEL.replace("product", "multiply")))
        self.assertFalse(self.entry_is_old(common=COMMON.replace("logistic", "sigmoid") + "// The end.\n"))
        self.assertTrue(self.entry_is_old(kernel=KERNEL.replace("++i", "i += 2")))
        self.assertTrue(self.entry_is_old(common=COMMON.replace("exp(-value)", "exp2(-value)")), "what generated code calls")
        self.assertTrue(ledger.is_old(entry_of("matmul-64"), ledger.empty("avx2"), self.kernels), "without a hash")


def entry_of(item, peer="pytorch", ratio=1.5, **fields):
    return {"item": item, "peer": peer, "ratio": ratio, "rounds": None, "date": None, "commit": None, "cpu": None, "versions": None,
            "hash": None, **fields}


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.taken = {"solvers": ["matmul:cpu"], "kernels": {"matmul_cpu.cl": "0"}}
        self.hash = hash_of(self.taken)
        self.ledger = {**ledger.empty("avx2"), "taken": {self.hash: self.taken},
                       "entries": [entry_of("matmul-1024", hash=self.hash), entry_of("matmul-64"), entry_of("matmul-64", "openvino", 0.5)]}

    def test_writing_and_reading(self):
        path = ledger.write(self.folder, self.ledger)
        again = ledger.read(self.folder, "avx2")
        self.assertEqual([(entry["item"], entry["peer"]) for entry in again["entries"]],
                         [("matmul-64", "pytorch"), ("matmul-64", "openvino"), ("matmul-1024", "pytorch")])
        self.assertEqual(ledger.text_of(again), path.read_text())
        self.assertEqual(len(path.read_text().splitlines()), 9, "a line for each entry")
        self.assertEqual(ledger.read(self.folder, "neon"), ledger.empty("neon"))
        self.assertEqual(list(ledger.read_all(self.folder)), ["avx2"])

    def test_merging(self):
        other = {"solvers": ["matmul:direct"], "kernels": {"matmul_direct.cl": "1"}}
        merged = ledger.merged(self.ledger, [entry_of("matmul-1024", ratio=2, hash=hash_of(other)), entry_of("adam-25m")],
                               {hash_of(other): other})
        self.assertEqual({(entry["item"], entry["peer"]): entry["ratio"] for entry in merged["entries"]},
                         {("matmul-1024", "pytorch"): 2, ("matmul-64", "pytorch"): 1.5, ("matmul-64", "openvino"): 0.5,
                          ("adam-25m", "pytorch"): 1.5})
        self.assertEqual(list(merged["taken"]), [hash_of(other)], "what no entry needs is gone")
        ledger.write(self.folder, merged)

    def test_wrong_files(self):
        def wrong(what, change):
            book = copy.deepcopy(self.ledger)
            change(book)
            path = pathlib.Path(self.folder) / "avx2.json"
            path.write_text(json.dumps(book))
            with self.assertRaises(ValueError) as caught:
                ledger.read(self.folder, "avx2")
            self.assertIn(what, str(caught.exception))
            self.assertIn(str(path), str(caught.exception))
        wrong("is not of format 1", lambda book: book.update(format=2))
        wrong("is of class 'sse', not 'avx2'", lambda book: book.update({"class": "sse"}))
        wrong('has no "entries"', lambda book: book.pop("entries"))
        wrong("that is not of what stands beside it", lambda book: book["taken"][self.hash]["solvers"].append("reduce:direct"))
        wrong("has a hash of nothing", lambda book: book["taken"].clear())
        wrong("has no ratio above 0", lambda book: book["entries"][0].update(ratio=0))
        wrong("has no ratio above 0", lambda book: book["entries"][0].update(ratio=float("inf")))
        wrong("has no ratio above 0", lambda book: book["entries"][0].update(ratio=True))
        wrong("has a rounds that is no number", lambda book: book["entries"][0].update(rounds="two"))
        wrong("has a cpu that is no text", lambda book: book["entries"][0].update(cpu=8))
        wrong("has a spread that is no two numbers", lambda book: book["entries"][0].update(spread=[1, "two"]))
        wrong("has versions that are no texts", lambda book: book["entries"][0].update(versions={"driver": 3}))
        wrong("names no item", lambda book: book["entries"][0].update(item=["matmul-64"]))
        wrong("names no peer", lambda book: book["entries"][0].update(peer=[]))
        wrong("has a hash of nothing", lambda book: book["entries"][0].update(hash={}))
        wrong("a date that is not YYYY-MM-DD", lambda book: book["entries"][0].update(date="2026-13-45"))
        wrong("a date that is not YYYY-MM-DD", lambda book: book["entries"][0].update(date=20261126))
        wrong("that is not of what stands beside it", lambda book: book["taken"][self.hash].update(solvers=[1]))
        wrong("a date that is not YYYY-MM-DD", lambda book: book["entries"][0].update(date="yesterday"))
        wrong("names no peer", lambda book: book["entries"][0].update(peer="caffe"))
        wrong("lacks a field", lambda book: book["entries"][0].pop("cpu"))
        wrong("a field 'colour' that nobody knows", lambda book: book["entries"][0].update(colour=1))
        wrong("two entries of matmul-64 beside pytorch", lambda book: book["entries"].append(entry_of("matmul-64")))
        path = pathlib.Path(self.folder) / "avx2.json"
        path.write_text("{")
        with self.assertRaisesRegex(ValueError, "avx2.json: Expecting"):
            ledger.read(self.folder, "avx2")
        path.unlink()
        path.mkdir()
        with self.assertRaisesRegex(ValueError, "avx2.json: Is a directory$"):
            ledger.read(self.folder, "avx2")


class Classes(unittest.TestCase):
    def expect(self, wanted, machine="x86_64", avx512=False, **found):
        device = {"name": "cpu-haswell", "type": "CPU", "class": "cpu-8", "platform": "Portable Computing Language", **found}
        self.assertEqual(ledger.class_of(device, machine, avx512), wanted)
        self.assertEqual(ledger.is_of_cpus(wanted), device["type"] == "CPU")

    def test_cpus(self):
        self.expect("avx2")
        self.expect("avx2-on-avx512", avx512=True)
        self.expect("avx512-half", avx512=True, **{"class": "cpu-16-half"})
        self.expect("avx512-full", **{"class": "cpu-16-full"})
        self.expect("sse", **{"class": "cpu-4"})
        self.expect("neon", machine="aarch64", **{"class": "cpu-4"})
        self.expect("llvmpipe", name="llvmpipe (LLVM 15.0.6, 256 bits)", platform="rusticl", **{"class": "other"})
        self.expect("avx2-intel(r)", platform="Intel(R) OpenCL")
        self.expect("cpu-other", **{"class": "other"})

    def test_gpus(self):
        for name, wanted in (("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA H200", "h200"), ("NVIDIA GeForce RTX 3090", "rtx-3090"),
                             ("AMD Radeon RX 7900 XTX", "rx-7900-xtx"), ("Intel(R) Arc(TM) A770 Graphics", "arc-a770")):
            self.expect(wanted, name=name, type="GPU", platform="a GPU's", **{"class": "other"})


class Gpus(unittest.TestCase):
    SUMMARY = """== clnet c88c0af-dirty, 2026-11-26T10:00:00Z, all steps, budget 600 s, 15 at a time
NVIDIA H100 80GB HBM3, 81559 MiB, 580.159.04, 1980 MHz, 700.00 W
PyTorch: exit code 0, 3 times; PyTorch 2.11.0+cu128, CUDA 12.8, on NVIDIA H100 80GB HBM3

| item | clnet ms | PyTorch ms | ratio | clnet TF32 | PyTorch TF32 | ratio |
|---|---|---|---|---|---|---|
| matmul-1024 | 0.090 | 0.057 | 0.63 | 0.050 | 0.030 | 0.60 |
| resnet18-infer-b1 | 1.000 | 1.500 | 1.51 | – | – | – |
| softmax-4096-1000 | 0.017 | – | – | – | – | – |
| tiny | 0.000 | 0.001 | 9.00 | – | – | – |
"""

    def test_entries(self):
        what = {"solvers": ["matmul:gpu{m=128}"], "kernels": {"matmul_gpu.cl": "0"}}
        entries, taken = ledger.gpu_entries(self.SUMMARY, {"matmul-1024": what}.get)
        self.assertEqual([(entry["item"], entry["ratio"], entry["hash"]) for entry in entries],
                         [("matmul-1024", 0.63, hash_of(what)), ("resnet18-infer-b1", 1.51, None)])
        self.assertEqual(taken, {hash_of(what): what})
        self.assertEqual({key: entries[0][key] for key in ("peer", "commit", "date", "versions")},
                         {"peer": "pytorch-cuda", "commit": "c88c0af-dirty", "date": "2026-11-26",
                          "versions": {"driver": "580.159.04", "pytorch-cuda": "2.11.0+cu128"}})
        for entry in entries:
            self.assertIsNone(ledger.problem_of_entry(entry, taken))

    def test_what_is_no_summary(self):
        for text in ("", self.SUMMARY.replace("== clnet", "clnet"), self.SUMMARY.partition("| matmul")[0], self.SUMMARY.replace(", CUDA", "")):
            with self.assertRaises(ValueError):
                ledger.gpu_entries(text, lambda item: None)

    def test_wrong_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "kernels").mkdir()
            for arguments, wanted in ((["no_such_file", "h100"], "no_such_file"), (["summary", "H 100"], "'H 100' is no name of a class"),
                                      (["summary", "avx2"], "'avx2' is no class of GPUs")):
                with self.assertRaises(SystemExit) as end:
                    ledger.main(["gpu", *arguments, "--build", folder], pathlib.Path(folder))
                self.assertIn(wanted, str(end.exception.code))

    def enter(self, root, named):
        """What is said where a summary names a commit."""
        (root / "summary.txt").write_text(self.SUMMARY.replace("c88c0af-dirty", named))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            ledger.main(["gpu", str(root / "summary.txt"), "h100", "--build", str(root / "build")], root)
        return said.getvalue()

    def test_hashes_are_of_the_commit_that_was_measured(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)

        def git(*arguments):
            return subprocess.run(["git", "-C", folder.name, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout.strip()
        Tree(root)
        (root / "build/tools").mkdir(parents=True)
        (root / "build/tools/clnet-bench").touch()
        git("init", "--quiet")
        git("add", "kernels")
        git("commit", "--quiet", "-m", "first")
        first = git("describe", "--always")
        self.assertIn("null_opencl.icd, the null driver\n", self.enter(root, first), "no null driver")
        (root / "build/tests").mkdir()
        (root / "build/tests/null_opencl.icd").touch()
        with unittest.mock.patch.object(ledger, "log_of", lambda *_: LOG):
            self.assertIn("2 ratios, 1 hashes", self.enter(root, first))
            for named in (first + "-dirty", "0123456", "unknown"):
                self.assertIn(f"no hashes, so that the entries count as old: {named}, which was measured", self.enter(root, named))
            (root / "kernels/common.clh").write_text(COMMON + "// The end.\n")
            self.assertIn("2 ratios, 0 hashes", self.enter(root, first), "a file that has changed")
            git("commit", "--quiet", "-a", "-m", "second")
            self.assertIn("2 ratios, 0 hashes", self.enter(root, first), "another commit")
        with unittest.mock.patch.object(ledger, "log_of", unittest.mock.Mock(side_effect=RuntimeError("no device"))):
            self.assertIn("the null driver runs no device 'h100': no device", self.enter(root, git("describe", "--always")))


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        Tree(self.root)
        (self.root / "docs").mkdir()
        (self.root / "docs/performance.md").write_text("# Performance\n<!-- ledger -->\nold\n<!-- end of ledger -->\nthe rest\n")
        taken = taken_of("matmul-256", LOG, Kernels(self.root / "kernels"))
        entries = [entry_of("matmul-256", hash=hash_of(taken)), entry_of("matmul-256", "openvino", 0.42), entry_of("adam-25m", ratio=0.5)]
        ledger.write(self.root / "bench/ledger", {**ledger.empty("avx2"), "taken": {hash_of(taken): taken}, "entries": entries})
        ledger.write(self.root / "bench/ledger", {**ledger.empty("h200"), "entries": [entry_of("matmul-256", "pytorch-cuda", 3.0)]})

    def run_main(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                ledger.main(list(arguments), self.root)
            except SystemExit as end:
                return f"{said.getvalue()}{end.code}"
        return said.getvalue()

    def test_both_pages(self):
        self.assertIn("docs/ledger.md is not what", self.run_main("page", "--check"))
        self.run_main("page")
        self.assertEqual(self.run_main("page", "--check"), "")
        text = (self.root / "docs/ledger.md").read_text()
        self.assertIn("| item | peer | `avx2` | `h200` |", text)
        self.assertIn("| `matmul-256` | PyTorch | 1.50 | 3.00° |", text)
        self.assertIn("| `matmul-256` | OpenVINO | 0.42° | – |", text)
        self.assertIn("| `neon` |", text, "a class without entries says how its defaults are chosen")
        self.assertIn("\n- `avx2`, 2 of 3 below 1.0: `matmul-256` OpenVINO 0.42°, `adam-25m` 0.50°.\n", text)
        self.assertIn("\n- `h200`, 0 of 1 below 1.0.\n", text)
        text = (self.root / "docs/performance.md").read_text()
        self.assertTrue(text.startswith("# Performance\n<!-- ledger -->\nA cell is PyTorch's time by clnet's;") and text.endswith("<!-- end of ledger -->\nthe rest\n"))
        self.assertIn("° marks an old entry", text[:text.index("| item |")], "the mark is explained above the table")
        self.assertIn("| `matmul-256` | 1.50, OpenVINO 0.42° | 3.00° |", text)
        self.assertNotIn("below 1.0", text)

    def test_a_changed_kernel_makes_the_page_old(self):
        self.run_main("page")
        Tree(self.root, kernel=KERNEL.replace("++i", "i += 2"))
        self.assertIn("docs/ledger.md is not what bench/ledger and kernels/ say", self.run_main("page", "--check"))
        self.run_main("page")
        self.assertIn("| `matmul-256` | PyTorch | 1.50° | 3.00° |", (self.root / "docs/ledger.md").read_text())

    def test_what_is_old(self):
        self.assertEqual(self.run_main("old", "avx2"), "adam-25m\nmatmul-256\n")
        for name, wanted in (("avx3", "there is no class 'avx3'"), ("neon", "nothing of neon is old")):
            ledger.write(self.root / "bench/ledger", ledger.empty("neon"))
            said = self.run_main("old", name)
            # Said where items are expected, with 1 as the exit status.
            self.assertTrue(said.startswith(wanted) and said.endswith("\n1"), said)

    def test_a_page_without_marks(self):
        (self.root / "docs/performance.md").write_text("nothing\n")
        self.assertIn("performance.md: has no <!-- ledger -->", self.run_main("page"))

    def test_weak_items_are_shown(self):
        weak = [entry_of(f"matmul-{n}", ratio=0.9) for n in (2, 3, 4, 5, 6)]
        with self.assertRaisesRegex(ValueError, "would show 0 items below 1.0 of 5"):
            ledger.check_shown({"avx2": {"entries": weak}})
        ledger.check_shown({"avx2": {"entries": [entry_of("matmul-2", ratio=1.1), entry_of("adam-25m", ratio=0.9)]}})

    def test_the_list(self):
        self.assertEqual(len(set(ledger.SHOWN)), 25)
        for name in ledger.SHOWN:
            self.assertIsNotNone(parse(name), name)

    def test_the_repositorys_own(self):
        for name, book in ledger.read_all(ledger.FOLDER).items():
            self.assertEqual(ledger.text_of(book), (ledger.FOLDER / f"{name}.json").read_text(), name)


if __name__ == "__main__":
    unittest.main()

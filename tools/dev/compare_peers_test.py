#!/usr/bin/env python3
"""Checks what compare_peers.py makes of names and measurements, without any peer."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
import unittest.mock

import compare_peers
from peers.items import can_run, parse
from peers.processes import ANSWER, ask, best_environment, measure_peer
from peers.table import ratios_of, replace_between_marks, summary, table


class Names(unittest.TestCase):
    def expect(self, name, kind, **fields):
        item = parse(name)
        self.assertIsNotNone(item, name)
        self.assertEqual(item.kind, kind, name)
        for key, value in fields.items():
            self.assertEqual(item.fields[key], value, f"{name}: {key}")

    def test_products(self):
        self.expect("matmul-1024", "matmul", m=1024, n=None, k=None, batch=None)
        self.expect("matmul-35x700x2048", "matmul", m=35, n=700, k=2048)
        self.expect("matmul-128-b64", "matmul", m=128, n=None, k=None, batch=64)
        self.expect("linear-512-1000-b16-backward-data", "linear", inputs=512, outputs=1000, batch=16, what="backward-data")

    def test_convolutions(self):
        self.expect("conv-3-64-224-b16-forward", "convolution", kernel=None, inputs=3, outputs=64, size=224, stride=None, batch=16,
                    what="forward")
        self.expect("conv1x1-256-512-56-s2-b16-backward-weights", "convolution", kernel=1, stride=2, what="backward-weights")
        self.expect("depthwise-96-112-s2-b16-forward", "depthwise", inputs=96, size=112, stride=2)
        self.expect("transposed2d-64-1-14-k4-s2-b64-train", "axes", type="transposed", axes=2, kernel=4, stride=2, what="train")

    def test_pools(self):
        self.expect("maxpool3s2-64-112-b16-backward", "pool", type="max", kernel=3, stride=2, channels=64, size=112, what="backward")
        self.expect("maxpool2s2-64-112-b16-forward", "pool", kernel=2, stride=2, what="forward")
        self.expect("adaptive-avgpool7-64-112-b16-backward", "adaptive-pool", out=7, channels=64, size=112, batch=16, what="backward")
        self.expect("global-avgpool-64-112-b16-forward", "adaptive-pool", out=None, channels=64, size=112, batch=16, what="forward")

    def test_normalisations(self):
        self.expect("batch-norm-64-56-b16-train", "batch-norm", channels=64, size=56, batch=16, what="train")
        self.expect("layer-norm-4096-1024-forward", "layer-norm", rows=4096, width=1024, what="forward")
        self.expect("layer-norm-4096-1024-train", "layer-norm", what="train")

    def test_elements(self):
        self.expect("elementwise-pow2.5-1m", "elementwise", function="pow2.5")
        self.expect("elementwise-gelu-tanh-1m", "elementwise", function="gelu-tanh")
        self.expect("permute-6d-1m", "memory", function="permute")
        self.expect("argmax-64m", "memory", large="argmax")
        self.expect("randn-1m", "random", function="randn")
        self.expect("gather-1-1m", "gather", dim=1)
        self.expect("embedding-50000-512-b8192-backward", "embedding", rows=50000, width=512, count=8192, what="backward")
        self.expect("adam-25m", "optimizer")
        self.expect("function-sort-dim1-train", "function", function="sort-dim1", what="train")

    def test_others(self):
        self.expect("keras-cnn-train-b32", "network", network="keras-cnn", what="train", batch=32)
        self.expect("vit-tiny-infer-b8", "transformer", batch=8)
        self.expect("lstm-512-gradient-b32", "recurrent", type="lstm", hidden=512, what="gradient")
        self.expect("lstm-by-hand-128-t200-b32", "by-hand")
        self.expect("lstm-by-hand-128-t200-b32-compiled", "by-hand")

    def test_what_nobody_knows(self):
        for name in ("", "matmul-", "matmul-3x4", "conv3x5-1-1-1-b1-forward", "conv-3-64-224-b16", "vgg99-infer-b1", "sum-64m-more",
                     "maxpool2-64-112-b16", "gather-2-1m", "batch-norm-64-56-b16-forward"):
            self.assertIsNone(parse(name), name)

    def test_all_bars_are_known(self):
        for name in compare_peers.BARS:
            self.assertIsNotNone(parse(name), name)

    def test_who_can_run_what(self):
        def able(name):
            return [peer for peer in compare_peers.PEERS if can_run(peer, parse(name))]
        self.assertEqual(able("resnet18-infer-b1"), ["pytorch", "compiled", "onnxruntime", "openvino"])
        self.assertEqual(able("maxpool2s2-64-112-b16-forward"), ["pytorch", "compiled", "onnxruntime", "openvino"])
        self.assertEqual(able("maxpool2s2-64-112-b16-backward"), ["pytorch", "compiled"])
        self.assertEqual(able("resnet18-train-b16"), ["pytorch", "compiled"])
        self.assertEqual(able("conv-3-64-224-b16-backward-data"), ["pytorch", "compiled"])
        self.assertEqual(able("lstm-128-forward-b32"), ["pytorch", "onnxruntime", "openvino"])
        self.assertEqual(able("lstm-by-hand-128-t200-b32"), ["pytorch", "loop"])
        self.assertEqual(able("char-gpt-generate-b1"), ["pytorch"])
        self.assertEqual(able("dropout-1m"), ["pytorch", "compiled"])
        self.assertEqual(able("adam-25m"), ["pytorch"])


class Tables(unittest.TestCase):
    ours = {"a": [[2.0, 1.0], [4.0, 2.0]], "b": [[1.0, 1.0], [1.0, 1.0]]}
    theirs = {"pytorch": {"a": [[6.0, 3.0, 9.0], [4.0, 2.0, 7.0]], "b": [[0.5, 0.5, 1.0], [0.7, 0.4, 1.0]]},
              "onnxruntime": {"a": [[1.0, 1.0, 1.0]] * 2}}

    def test_ratios(self):
        self.assertEqual(ratios_of(self.ours["a"], self.theirs["pytorch"]["a"]), ([1.0, 3.0], 2.0))

    def test_rows(self):
        head, rule, a, b = table(["a", "b"], self.ours, self.theirs)
        self.assertEqual(a, "| `a` | 3.000 | 5.000 | **2.00** | 1.00 to 3.00 | 2.00 | 1.000 | **0.38** | 0.25 to 0.50 | 1.00 |")
        self.assertTrue(b.endswith("| **0.60** | 0.50 to 0.70 | 0.40 | – | – | – | – |"), b)
        self.assertEqual({line.count("|") for line in (head, rule, a, b)}, {11})

    def test_cpu_times(self):
        head, rule, a, b = table(["a", "b"], self.ours, self.theirs, cpu=True)
        self.assertIn("| PyTorch ms | CPU ms | ratio |", head)
        self.assertIn("| 5.000 | 8.000 | **2.00** |", a)
        self.assertEqual({line.count("|") for line in (head, rule, a, b)}, {13})

    def test_without_peers(self):
        self.assertEqual(table(["a"], self.ours, {})[2], "| `a` | 3.000 |")
        self.assertEqual(summary(self.ours, {}), "No peer measured anything.")

    def test_summary(self):
        self.assertEqual(summary(self.ours, self.theirs),
                         "Smallest ratios: PyTorch 0.60 (`b`), of the best times 0.40 (`b`); "
                         "onnxruntime 0.38 (`a`), of the best times 1.00 (`a`).")
        self.assertNotIn("onnxruntime", summary(self.ours, self.theirs | {"onnxruntime": {}}))

    def test_marks(self):
        self.assertEqual(replace_between_marks("x\n<!-- ratios -->\nold\n<!-- end of ratios -->\ny", "ratios", ["new"]),
                         "x\n<!-- ratios -->\nnew\n<!-- end of ratios -->\ny")
        with self.assertRaises(ValueError):
            replace_between_marks("x\n<!-- ratios -->\n<!-- end of ratios -->\ny", "other", ["new"])


class Processes(unittest.TestCase):
    def test_environment(self):
        before = dict(os.environ)
        os.environ["OPENBLAS_CORETYPE"] = "Prescott"
        try:
            env = best_environment(3)
        finally:
            os.environ.clear()
            os.environ.update(before)
        self.assertNotIn("OPENBLAS_CORETYPE", env)
        self.assertEqual(env["OMP_NUM_THREADS"], "3")

    def answer(self, program):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.py")
            pathlib.Path(path).write_text(program)
            return ask(path, "pytorch", 1)

    def test_an_answer_among_other_output(self):
        self.assertEqual(self.answer(f"print('noise'); print('{ANSWER}' + '{{\"a\": 1}}'); print('more')"), {"a": 1})

    def test_a_process_that_dies(self):
        problem = self.answer("import sys; print('no memory', file=sys.stderr); sys.exit(3)")["problem"]
        self.assertEqual(problem, "its process ended with 3: no memory")

    def test_exported_modules(self):
        """Both peers that compute exported modules get one file, which is made once and whose fault is theirs."""
        tasks, limits = [], {"ATEN_CPU_CAPABILITY": "avx2"}

        def answers(folder, problem):
            def asked(script, task, threads, *arguments, policy=None):
                tasks.append(task)
                if task != "export":
                    self.assertEqual(policy["ATEN_CPU_CAPABILITY"], "avx2")
                    return {"mlp-infer-b1": {"ms": [2.0, 1.0, 3.0]}}
                if not problem:
                    pathlib.Path(folder, "mlp-infer-b1.onnx").touch()
                return {"mlp-infer-b1": {"problem": problem} if problem else {}}
            return asked
        for problem, wanted in ((None, {"ms": [2.0, 1.0, 3.0]}), ("no such operation", {"problem": "no such operation"})):
            with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("peers.processes.ask", answers(folder, problem)):
                for peer in ("onnxruntime", "openvino"):
                    self.assertEqual(measure_peer("script", peer, "mlp-infer-b1", 1, 1, folder, limits), wanted)
        self.assertEqual(tasks, ["export", *["onnxruntime"] * 2, *["openvino"] * 2, "export", "export"])

    def test_a_peer_that_is_missing(self):
        with unittest.mock.patch.object(compare_peers, "ask", return_value={"problem": "ModuleNotFoundError: No module named 'torch'"}):
            versions, missing = compare_peers.started(["compiled"], 1)
        self.assertEqual((versions, missing), ({}, ["torch.compile cannot run here: ModuleNotFoundError: No module named 'torch'"]))


class CommandLine(unittest.TestCase):
    def test_defaults(self):
        options = compare_peers.options_of([])
        self.assertEqual((options.items, options.peers), (compare_peers.BARS, list(compare_peers.PEERS)))

    def test_wrong_names(self):
        for arguments, wanted in ((["--peers", "pytorch,caffe"], "there is no peer 'caffe'"),
                                  (["no-item"], "there is no item named 'no-item'"),
                                  (["--rounds", "0"], "--rounds: 0 is not above 0"),
                                  (["--seconds", "nan"], "--seconds: nan is not above 0"),
                                  (["--ledger", "no_such_folder"], "--ledger: 'no_such_folder' is no folder and no item"),
                                  (["--ledger", *"nothing of avx2 is old".split()], "--ledger: 'nothing' is no folder and no item")):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
                compare_peers.options_of(arguments)
            self.assertIn(wanted, said.getvalue())

    def test_the_ledger(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for arguments, items, folder in ((["--ledger"], compare_peers.BARS, str(compare_peers.ledger.FOLDER)),
                                         (["--ledger", "matmul-64", "adam-25m"], ["matmul-64", "adam-25m"], str(compare_peers.ledger.FOLDER)),
                                         (["matmul-64", "--ledger", folder.name], ["matmul-64"], folder.name)):
            options = compare_peers.options_of(arguments)
            self.assertEqual((options.items, options.ledger), (items, folder))
        said = io.StringIO()
        with contextlib.redirect_stderr(said), unittest.mock.patch.dict(os.environ, {"CLNET_SOLVER": "matmul:direct"}):
            compare_peers.options_of(["matmul-64"])
            with self.assertRaises(SystemExit):
                compare_peers.options_of(["matmul-64", "--ledger"])
        self.assertIn("--ledger: CLNET_SOLVER is set", said.getvalue())

    def test_entries(self):
        options = compare_peers.options_of(["matmul-64", "matmul-128", "--seconds", "0.5", "--threads", "2"])
        taken = {"matmul-64": {"solvers": ["matmul:cpu{lanes=8}"], "kernels": {"matmul_cpu.cl": "0"}}}
        common = {"date": "2026-11-26", "commit": "abc", "cpu": "a CPU", "versions": {"driver": "PoCL 3", "pytorch": "2", "openvino": "1"}}
        (entry,) = compare_peers.entries_of(options, {name: [[2.0, 1.0], [4.0, 2.0]] for name in options.items},
                                            {"pytorch": {"matmul-64": [[6.0, 3.0, 9.0], [4.0, 2.0, 7.0]]}, "openvino": {}}, taken, common)
        self.assertEqual(entry, {
            "item": "matmul-64", "peer": "pytorch", "ratio": 2.0, "rounds": 2, "date": "2026-11-26", "commit": "abc", "cpu": "a CPU",
            "versions": {"driver": "PoCL 3", "pytorch": "2"}, "hash": compare_peers.hash_of(taken["matmul-64"]), "best": 2.0,
            "spread": [1.0, 3.0], "clnet_ms": 3.0, "peer_ms": 5.0, "seconds": 0.5, "threads": 2})
        self.assertIsNone(compare_peers.ledger.problem_of_entry(entry, {entry["hash"]: taken["matmul-64"]}))

    def test_a_peer_and_items_that_fail(self):
        """What one peer cannot do leaves the others' columns, and is measured no further."""
        asked = []

        def measure_peer(script, peer, name, *others):
            asked.append((peer, name))
            return {"problem": "no"} if (peer, name) == ("compiled", "matmul-64") else {"ms": [2.0, 1.0, 3.0]}
        options = compare_peers.options_of(["--rounds", "2", "matmul-64", "char-gpt-generate-b1"])
        with unittest.mock.patch.multiple(compare_peers, measure_peer=measure_peer, measure_clnet=lambda *_: [1.0, 1.0]):
            ours, theirs, problems, load = compare_peers.measure(options, ["pytorch", "compiled"])
        self.assertEqual(theirs, {"pytorch": {name: [[2.0, 1.0, 3.0]] * 2 for name in options.items}, "compiled": {}})
        self.assertEqual(problems, {("compiled", "matmul-64"): "no"})
        self.assertEqual(asked.count(("compiled", "matmul-64")), 1)
        self.assertNotIn(("compiled", "char-gpt-generate-b1"), asked)


class Ends(unittest.TestCase):
    """How a comparison ends: a line on what is wrong, before anything is measured where it can be known before."""
    DEVICE = {"name": "cpu-haswell", "type": "CPU", "class": "cpu-8", "platform": "Portable Computing Language", "driver_version": "3.1",
              "native_float_width": 8, "default": True}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.measured = pathlib.Path(folder.name), 0

    def build(self, device=None, list_="echo matmul-64"):
        """A build of two scripts; the path of its clnet-bench."""
        devices = json.dumps({"devices": [{**self.DEVICE, **(device or {})}]})
        for name, script in (("clnet-bench", list_), ("clnet-info", f"echo '{devices}'")):
            (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (self.folder / name).chmod(0o755)
        return str(self.folder / "clnet-bench")

    def end(self, *arguments, avx512=False, measure=lambda *_: [1.0, 1.0]):
        """Exit status, and what was said on both streams and to exit."""
        def counted(*others):
            self.measured += 1
            return measure(*others)
        said, status = io.StringIO(), 0
        with unittest.mock.patch.multiple(compare_peers, measure_clnet=counted, measure_peer=lambda *_: {"ms": [2.0, 1.0, 3.0]},
                                          started=lambda peers, threads: ({peer: "1" for peer in peers}, []), has_avx512=lambda: avx512,
                                          log_of=unittest.mock.Mock(side_effect=RuntimeError("no log"))), \
                unittest.mock.patch.dict(os.environ), unittest.mock.patch("signal.signal"), \
                contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                compare_peers.main(["matmul-64", "--rounds", "2", *arguments])
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
                said.write("" if isinstance(end.code, int) else end.code)
        return status, said.getvalue()

    def fails_before_measuring(self, wanted, *arguments, **fields):
        status, said = self.end(*arguments, **fields)
        self.assertEqual((status, self.measured, said.count("\n")), (1, 0, 0), said)
        self.assertIn(wanted, said)

    def test_builds(self):
        self.fails_before_measuring("clnet-bench: No such file or directory; build clnet", "--bench", str(self.folder / "clnet-bench"))
        self.fails_before_measuring("ended with 3: no OpenCL device", "--bench", self.build(list_="echo no OpenCL device >&2; exit 3"))
        self.fails_before_measuring("names no default device among cpu-haswell", "--bench", self.build({"default": False}))

    def test_ledgers(self):
        (self.folder / "avx2.json").write_text("[]")
        self.fails_before_measuring("avx2.json: is not of format 1", "--bench", self.build(), "--ledger", str(self.folder))

    def test_avx2(self):
        bench = self.build()
        self.fails_before_measuring("--avx2: this CPU has no AVX-512", "--bench", bench, "--avx2")
        self.fails_before_measuring("but of class avx512-half", "--bench", self.build({"class": "cpu-16-half"}), "--avx2", avx512=True)
        seen = {}
        said = self.end("--bench", self.build(), "--avx2", avx512=True,
                        measure=lambda *_: seen.update(os.environ) or [1.0, 1.0])[1]
        self.assertEqual((seen["CLNET_VECTOR_WIDTH"], seen["POCL_KERNELLIB_NAME"]), ("8", "avx2"))
        self.assertIn("kept to AVX2", said)
        self.assertIn("onnxruntime is left out", said)

    def test_an_interrupt(self):
        self.assertEqual(self.end("--bench", self.build(), measure=unittest.mock.Mock(side_effect=KeyboardInterrupt)),
                         (130, "matmul-64\ninterrupted\n"))

    def test_what_cannot_be_written(self):
        """Neither keeps the other from being written."""
        path = self.folder / "times.json"
        status, said = self.end("--bench", self.build(), "--ledger", str(self.folder), "--json", str(path))
        self.assertEqual((status, path.exists()), (1, True))
        self.assertTrue(said.endswith("--ledger: no log"), said)
        status, said = self.end("--bench", self.build(), "--json", str(self.folder))
        self.assertTrue(status == 1 and "--json: " in said, said)


if __name__ == "__main__":
    unittest.main()

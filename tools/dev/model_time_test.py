#!/usr/bin/env python3
"""Checks model_time.py without a build: what the study's model said, and what it makes of launches, programs and numbers."""

import contextlib
import io
import re
import unittest
import unittest.mock

import model_time
from model_time import (DEVICES, MATRIX_SHARE, ROOT, WINOGRAD_SHARES, WINOGRAD_TRANSFORM, Launch, busy, fullness, hidden, launch_of, modelled,
                        phase_parts, product, step, summary, table, unwritten, winograd)
from offline_limits import Limits
from offline_targets import Failed

# Launches of a training step of ResNet-18 at batch 16 at eff7fd7, and the microseconds that the study's own program gave them: CLBlast's
# products in groups of 128 (multiply-adds that it counted, share of the peak that it gave that kernel: at most XgemmDirect's where
# no more than two groups share a unit), and kernels that move memory (batch_norm_gpu twice).
STUDY = """\
rtx3090 XgemmDirectTT 10 63560448 1416167424 0.32 2038.70
rtx3090 XgemmDirectTT 36 64372736 1849688064 0.32 739.70
rtx3090 XgemmDirectTT 144 64815104 3699376128 0.32 438.34
rtx3090 XgemmDirectTN 400 13549568 1849688064 0.32 166.36
rtx3090 XgemmDirectNN 14112 64815104 3699376128 0.32 324.74
h100 XgemmDirectTT 10 63560448 1416167424 0.32 1970.72
h100 XgemmDirectTT 144 64815104 3699376128 0.32 423.72
h100 XgemmDirectTT 288 18841600 1849688064 0.32 134.07
h100 XgemmDirectNN 3600 25493504 3699376128 0.32 225.79
rx7900xtx Xgemm 3 77119488 1849688064 0.32 12050.08
rx7900xtx Xgemm 18 35618816 1849688064 0.32 2008.35
rx7900xtx Xgemm 104 14090240 1962934272 0.32 437.19
rx7900xtx Xgemm 288 13729792 1887436800 0.6 102.47
rx7900xtx Xgemm 1764 34471936 3699376128 0.6 200.83
rtx3090 max_pool2d_backward 200704 128450600 0 0.25 171.54
rtx3090 batch_norm_apply 50176 154141700 0 0.25 205.85
h100 batch_norm_gpu 960 205536800 0 0.25 128.46
h100 max_pool2d 50176 77070300 0 0.25 48.17
rx7900xtx optimizer_update 18954 97044500 58226700 0.25 126.36
h100 fused_greater_div_expand_where 1568 3244000 1605600 0.25 4.00
"""


class Study(unittest.TestCase):
    def test_times_per_kernel(self):
        for line in STUDY.splitlines():
            name, kernel, groups, size, flops, share, wanted = line.split()
            device = DEVICES[name]
            product = kernel.startswith("Xgemm")
            items = 128 if product else 64 if kernel.startswith("max_pool") else 256
            # What the model calls products are clnet's own.
            launch = Launch("matmul_gpu" if product else kernel, "", int(groups), items, bytes=float(size), flops=float(flops),
                            executed=float(flops), share=float(share), waves=device.waves)
            time = modelled(launch, device)[0]
            self.assertLess(abs(time / float(wanted) - 1), 0.05, f"{line}: {time:.2f}")


class Bounds(unittest.TestCase):
    device = DEVICES["rtx3090"]

    def test_waves_hide_waits(self):
        self.assertEqual([round(hidden(waves), 9) for waves in (0, 2, 4, 6, 8, 12, 48)], [0.0, 0.25, 0.5, 0.67, 0.84, 1.0, 1.0])

    def test_units_without_groups(self):
        self.assertAlmostEqual(busy(Launch("matmul_gpu", "", 41, 256, 0), self.device), 0.5 * 0.84)

    def test_last_round(self):
        busy_with = lambda groups, waves=48: busy(Launch("matmul_gpu", "", groups, 256, 0, waves=waves), self.device)
        self.assertAlmostEqual(busy_with(2 * 82), 1)
        self.assertAlmostEqual(busy_with(2 * 82 + 1), 165 / 246)
        self.assertAlmostEqual(busy_with(6 * 82 + 1), 1)
        # Registers for one group only: the other one waits, and hides nothing.
        self.assertAlmostEqual(busy_with(2 * 82, waves=8), 0.84)

    def test_what_bounds(self):
        for launch, wanted in ((Launch("relu", "", 100000, 256, 8e8), "memory"), (Launch("relu", "", 1, 64, 256), "launch"),
                               (Launch("reduce", "", 21, 64, 4e6), "latency"), (Launch("index_select", "", 21, 64, 4e9), "launch"),
                               (Launch("matmul_gpu", "", 10000, 256, 1e6, 1e11, 1e11, 0.8), "arithmetic"),
                               # A product's waits are those of its waves.
                               (Launch("matmul_gpu", "", 1, 64, 1e6, 1e3, 1e3, 0.8), "launch")):
            self.assertEqual(modelled(launch, self.device)[1], wanted)

    def test_latency(self):
        """1344 items read 744 words each, four of them at a time."""
        self.assertAlmostEqual(modelled(Launch("reduce", "", 21, 64, 4e6), self.device)[0], 4e6 / 1344 / 16 * 0.5)


def defines(text):
    return dict(re.findall(r"(\w+)=(\w*)", text))


class Products(unittest.TestCase):
    device = DEVICES["rtx3090"]
    tile = "TM=128 TN=128 TK=8 RM=8 RN=8"

    def test_beyond_the_edges(self):
        """16 x 512 x 7 x 7, 3x3: k of 4608 in 6 parts, 784 pixels in 7 tiles of 128."""
        numbers = [0, 16, 512, 7, 7, 512, 7, 7, 512, 512, 1, 1, 4608, 0, 768, 6, 401408]
        executed, share, _ = product("conv2d_gpu", defines(self.tile + " FORWARD=1 BLOCKED=1"), numbers, 7 * 4 * 6, self.device)
        self.assertEqual((executed, share), (2 * 896 * 512 * 4608, 0.81))

    def test_shares(self):
        numbers = [16, 512, 7, 7, 512, 7, 7, 512, 512, 1, 1, 784, 0, 784, 1, 0]
        for text, wanted in ((self.tile + " WEIGHTS=1", 0.75), (self.tile + " DATA=1 BLOCKED=1 KH=3 KW=3 SH=1 SW=1", 0.81),
                             (self.tile + " DATA=1 KH=3 KW=3 SH=1 SW=1", 0.71),
                             (self.tile + " DATA=1 PACKED=1 BLOCKED=1 KH=3 KW=3 SH=1 SW=1", 0.83),
                             (self.tile + " DATA=1 PACKED=1 KH=3 KW=3 SH=1 SW=1", 0.74),
                             # A quarter of a word per multiply-add is what local memory gives.
                             ("TM=64 TN=64 TK=16 RM=4 RN=4 DATA=1 BLOCKED=1 KH=3 KW=3 SH=1 SW=1", 0.5)):
            self.assertEqual(product("conv2d_gpu", defines(text), numbers, 1, self.device)[1], wanted)

    def test_a_round_and_a_slice_that_is_not_full(self):
        executed, share, _ = product("matmul_gpu", defines(self.tile), [0, 1, 1, 4100, 0, 0, 0, 2048, 2052, 1, 0], 1, self.device)
        self.assertEqual((executed, share), (2 * 128 * 128 * 2056, 0.83))

    strided = "KH=3 KW=3 SH=2 SW=2"

    def test_phases(self):
        """Of 3x3 by a stride of two phases have 4, 2, 2 and 1 taps of 8 channels."""
        found = lambda *cut: list(phase_parts(defines(self.strided), *cut))
        self.assertEqual(found(32, 0, 32, 1), [[32], [16], [16], [8]])
        self.assertEqual(found(32, 0, 12, 3), [[12, 12, 8], [12, 4], [12, 4], [8]])
        self.assertEqual(found(32, 16, 16, 1), [[16], [], [], []])
        self.assertEqual(list(phase_parts(defines("KH=1 KW=1 SH=2 SW=2"), 32, 0, 32, 1)), [[32], [0], [0], [0]])

    def test_taps_that_there_are(self):
        numbers = [16, 64, 56, 56, 128, 28, 28, 64, 128, 1, 1, 512, 0, 512, 1, 100]
        for text, part in ((self.strided, 9 / 16), ("KH=1 KW=1 SH=2 SW=2", 1 / 4), ("KH=2 KW=2 SH=2 SW=2", 1)):
            data = defines(f"{self.tile} DATA=1 BLOCKED=1 {text}")
            executed, _, _ = product("conv2d_gpu", data, numbers, 40, self.device)
            self.assertEqual((executed, fullness("conv2d_gpu", data, numbers)), (2 * 40 * 128 * 128 * 512 * part, part))
            self.assertEqual(unwritten("conv2d_gpu", data, numbers), 0)
        self.assertAlmostEqual(busy(Launch("conv2d_gpu", "", 8 * 82, 256, 0, full=1 / 4), self.device), 1)

    def test_parts_that_there_are_not(self):
        """Of 4 parts phases have 4, 2, 2 and 1."""
        cut = [16, 64, 56, 56, 128, 28, 28, 64, 128, 1, 1, 512, 0, 128, 4, 100]
        self.assertEqual(unwritten("conv2d_gpu", defines(f"DATA=1 {self.strided}"), cut), 4 * 100 * (4 - 9 / 4))
        self.assertEqual(unwritten("conv2d_sum_phases_gpu", defines(self.strided), [100, 5, 56, 56, 1, 1, 512, 128, 4]), 700)
        self.assertEqual(unwritten("conv2d_gpu", defines(f"WEIGHTS=1 {self.strided}"), cut), 0)
        self.assertEqual(unwritten("gemm_sum_gpu", {}, []), 0)

    def test_matrix_units(self):
        executed, share, peak = product("matmul_matrix_units_gpu", defines("TM=64 TN=64 TK=32 RM=32 RN=32 UNIT_tf32=1"),
                                        [0, 64, 64, 64, 0, 0, 0, 0, 64, 1, 0], 1, self.device)
        self.assertEqual((executed, share, peak), (2 * 64**3, MATRIX_SHARE, 35.6e12))

    def test_winograd(self):
        """16 x 64 x 56 x 56: 784 groups of 32 tiles and 32 channels; channels in whole slices, of a part at most."""
        numbers = [0, 16, 64, 56, 56, 64, 56, 56, 1, 1, 64, 0]
        tile = defines("TM=32 TN=32 TK=4 RM=8 RN=8")
        executed, share = winograd(tile, numbers, 784, self.device)
        self.assertEqual(executed, 2 * 784 * 16 * 32 * 32 * (64 + WINOGRAD_TRANSFORM))
        self.assertAlmostEqual(share, 0.83 * WINOGRAD_SHARES[64])
        numbers[2], numbers[10] = 18, 12
        self.assertEqual(winograd(tile, numbers, 2, self.device)[0], 2 * 2 * 16 * 32 * 32 * (10 + WINOGRAD_TRANSFORM))
        # For 16 multiply-adds an item reads eight words and writes two.
        self.assertAlmostEqual(winograd(defines("TM=16 TN=16 TK=8 RM=4 RN=4"), numbers, 2, self.device)[1], 16 / 10 / 4)

    def test_shares_of_winograds_tiles(self):
        """WINOGRAD_SHARES and the transform's length are those of the solver's model, the places of arguments the kernel's."""
        text = (ROOT / "lib/ops/conv/conv2d_winograd_gpu.cpp").read_text()
        tiles = re.findall(r"RatedTile\{\{\d+, \d+, \d+, (\d), (\d)\}, ([\d.]+)\}", text)
        self.assertEqual({int(rows) * int(columns): float(share) for rows, columns, share in tiles}, WINOGRAD_SHARES)
        self.assertEqual(int(re.search(r"last_transform = (\d+)", text)[1]), WINOGRAD_TRANSFORM)
        kernel = (ROOT / "kernels/conv/conv2d_winograd_gpu.cl").read_text()
        parameters = re.search(r"kernel void conv2d_winograd_gpu\((.*?)\)\s*{", kernel, re.S)[1]
        numbers = re.findall(r"const int (\w+)", parameters)
        self.assertEqual((numbers[2], numbers[10]), ("C", "part"))

    def test_places_of_arguments(self):
        """FIRST_ARGUMENT agrees with the kernels."""
        for name, place in model_time.FIRST_ARGUMENT.items():
            folder = "conv" if name.startswith("conv") else "matmul"
            text = (ROOT / "kernels" / folder / ("conv2d_gpu.clh" if folder == "conv" else f"{name}.cl")).read_text()
            parameters = re.search(rf"kernel void {'CONV2D_GPU' if folder == 'conv' else name}\((.*?)\)\s*{{", text, re.S)[1]
            numbers = re.findall(r"const int (\w+)", parameters)
            self.assertEqual(numbers[place:place + 2], ["first", "part"], name)
            self.assertEqual(numbers.index("all_k"), place - 1 if folder == "conv" else 3, name)
            self.assertEqual(numbers[place + 2], "parts", name)
        self.assertEqual(re.findall(r"#define OPERANDS (.*)", text),
                         ["IN(w), IN(x), IN(bias), OUT(y), const int has_bias", "IN(w), IN(y), OUT(x)", "IN(y), IN(x), OUT(w)"])


PROGRAM = "#define TM 64\n#define TN 128\n#define TK 8\n#define RM 8\n#define RN 4\n#define WEIGHTS 1\n"


def event(name, size, flops=0, detail=""):
    return {"ph": "X", "name": name, "args": {"bytes": size, "flops": flops, "detail": detail}}


class Runs(unittest.TestCase):
    device = DEVICES["rtx3090"]

    def test_launch(self):
        limits = Limits.parse("kernel sm_86\nconv2d_gpu:64x128x8:8x4:weights 109/33\n")
        line = "12ab conv2d_gpu 1280x1x28 256x1x1 0 16,64,56,56,128,28,28,64,128,1,1,12544,0,448,28,73728"
        found = launch_of(event("conv2d_gpu", 27.5e6, 1.85e9, "a shape"), line, PROGRAM, limits, {"conv2d_gpu"}, self.device)
        self.assertEqual((found.detail, found.groups, found.items, found.bytes, found.flops), ("weights a shape", 140, 256, 27.5e6, 1.85e9))
        self.assertEqual((found.executed, found.waves), (2 * 140 * 64 * 128 * 448, 15))

    def test_shares_of_other_kernels(self):
        for name, wanted in (("conv2d_depthwise_gpu", 0.15), ("softmax_gpu", 0.25)):
            found = launch_of(event(name, 8, 64), f"12ab {name} 64x1x1 64x1x1 0 -", "", Limits(), set(), self.device)
            self.assertEqual((found.share, found.executed), (wanted, 64))

    def test_attention(self):
        program = "".join(f"#define {name} {value}\n" for name, value in (
            ("TM", 16), ("TN", 64), ("TK", 32), ("RM", 4), ("RN", 4), ("WIDTH", 64), ("VALUES", 64)))
        for name, causal, blocks in (("attention_gpu", 0, 7 * 2), ("attention_gpu", 1, 4 * 1 + 3 * 2), ("attention_backward_keys_gpu", 1, 10)):
            line = f"12ab {name} 448x1x1 64x1x1 0 7,100,100,64,64,1,1,{causal},0"
            found = launch_of(event(name, 8, 64), line, program, Limits(), set(), self.device)
            products = 256 if name != "attention_gpu" else 128
            self.assertEqual((found.share, found.executed), (0.5, 2 * 16 * 64 * blocks * products))

    def test_a_group_of_the_drivers_choice(self):
        found = launch_of(event("f", 8), "12ab f 100x3x1 0x0x0 0 -", "", Limits(), set(), self.device)
        self.assertEqual((found.groups, found.items, found.waves), (6, 64, 24))

    def run_step(self, events, lines, enough="0.1"):
        """What step() makes of a bench that leaves these, and one run of them before it is given enough seconds."""

        def bench(build, device, item, seconds, *options, **variables):
            if options:
                options[1].write_text('{"items": [{"best_ms": 2.5}]}')
                return
            folder = model_time.pathlib.Path(variables["NULL_OPENCL_DUMP"])
            folder.mkdir()
            (folder / "12ab.cl").write_text("")
            written, traced = (lines, events) if float(seconds) >= float(enough) else (lines[:3], events[:4])
            (folder / "launches").write_text("".join(line + "\n" for line in written))
            model_time.pathlib.Path(variables["CLNET_TRACE"]).write_text(model_time.json.dumps({"traceEvents": traced}))

        with unittest.mock.patch.object(model_time, "bench", bench):
            return step(None, "rtx3090", "an-item", Limits())

    def test_one_run(self):
        one = [event("write", 64), event("f", 8), event("g", 16)]
        lines = [f"12ab {name} 64x1x1 64x1x1 0 {run}" for run in range(6) for name in ("f", "g")]
        found, others, host_ms = self.run_step([event("peak", 1)] + one * 6, ["12ab peak 1x1x1 1x1x1 0 -"] + lines)
        self.assertEqual([(launch.name, launch.bytes) for launch in found], [("f", 8), ("g", 16)])
        self.assertEqual((dict(others), host_ms), ({"write": 64}, 2.5))

    def test_a_busy_machine(self):
        events, lines = [event(name, 8) for name in ("f", "g") * 6], [f"12ab {name} 64x1x1 64x1x1 0 -" for name in ("f", "g") * 6]
        self.assertEqual(len(self.run_step(events, lines, enough="1")[0]), 2)
        with self.assertRaisesRegex(Failed, "no two runs are the same"):
            self.run_step(events, lines, enough="2")

    def test_a_librarys_kernels(self):
        lines = [f"12ab {name} 64x1x1 64x1x1 0 -" for name in ("f", "Xgemm") * 6]
        with self.assertRaisesRegex(Failed, "a library launches kernels"):
            self.run_step([event("f", 8)] * 12, lines)

    def test_table(self):
        found = [Launch("small", "", 1, 64, 4)] * 3 + [Launch("large", "[9]", 10000, 256, 7.488e7), Launch("middle", "", 999, 256, 7.488e6)]
        lines = table(found, self.device, 2)
        self.assertEqual([line.split() for line in lines[1:]],
                         [["100.0", "82.0", "1", "100.0", "memory", "121.95", "large", "[9]"],
                          ["12.0", "9.8", "3", "4.0", "launch", "0.01", "small"], ["10.0", "8.2", "1", "the", "others"]])
        self.assertTrue(summary(found, self.device).startswith("0.12 ms modelled, 5 launches (memory 90 %, launch 10 %)"))


class CommandLine(unittest.TestCase):
    def test_wrong_names(self):
        for words, wanted in ((["--devices", "rtx3090,voodoo", "matmul-64"], "there is no device voodoo"),
                              (["--build", "/nowhere", "matmul-64"], "build it first")):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
                model_time.options_of(words)
            self.assertIn(wanted, said.getvalue())


if __name__ == "__main__":
    unittest.main()

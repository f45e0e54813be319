#!/usr/bin/env python3
"""Checks that offline_compile.py sees what it is there to see, without any compiler."""

import contextlib
import dataclasses
import io
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import offline_compile
from offline_compile import NETWORK, Programs, compile_all, compile_errors, kind, period, unpacked, worst
from offline_limits import KernelLimit, Limits, Step, problems
from offline_loops import Loop, amd_loops, below_bars, hottest, nvidia_loop, units_below_bars
from offline_targets import TARGETS, Compilers, Failed, Kernel, options_of, read_amd, read_intel, read_ptxas, required_groups, with_groups

RECORDED = """\
# a comment
network  rtx3090
lenet5   35/9600

kernel       sm_86  gfx1100   dg2
matmul_gpu   128/33 100/50    SIMD16
softmax_gpu  -      40/100/8  SIMD32/64

spilling  dg2
pool      16

compilers sm_86    ptxas 13.0.88
"""


class MatrixUnits(unittest.TestCase):
    def test_programs_for_those_that_a_target_lacks_are_left_out(self):
        programs = Programs()
        programs.texts = {"plain": "kernel", "wmma": "#define MATRIX_UNIT_wmma 1\n", "mma": "#define A 1\n#define MATRIX_UNIT_mma_sm80 1\n"}
        programs.groups["wmma"]["k"] = (256, 0)
        self.assertEqual(set(programs.of(TARGETS["gfx1100"]).texts), {"plain", "wmma"})
        self.assertEqual(programs.of(TARGETS["gfx1100"]).groups["wmma"], {"k": (256, 0)})
        self.assertEqual(set(programs.of(TARGETS["sm_90"]).texts), {"plain", "mma"})
        self.assertEqual(set(programs.of(TARGETS["gfx1030"]).texts), {"plain"})

    def test_ways_of_sub_groups_that_a_target_lacks_are_not_defined(self):
        programs = Programs()
        programs.texts = {"sum": "#define GROUP 256\n#define SUB_GROUPS_shfl 1\n#define X 1\n", "wave": "#define SUB_GROUPS_bpermute32 1\n"}
        self.assertEqual(programs.of(TARGETS["sm_90"]).texts, {"sum": programs.texts["sum"], "wave": ""})
        self.assertEqual(programs.of(TARGETS["gfx1030"]).texts, {"sum": "#define GROUP 256\n#define X 1\n", "wave": programs.texts["wave"]})
        self.assertEqual(programs.of(TARGETS["spirv"]).texts, {"sum": "#define GROUP 256\n#define X 1\n", "wave": ""})


class Records(unittest.TestCase):
    def found(self, **changes):
        """What is recorded, and what is found when some of it changes: (kind, target) -> fields."""
        recorded = Limits.parse(RECORDED)
        found = Limits.parse(RECORDED)
        for (table, *key), fields in changes.get("to", {}).items():
            cells = getattr(found, table)
            cells[tuple(key)] = dataclasses.replace(cells[tuple(key)], **fields)
        return found, recorded

    def expect(self, to, *wanted):
        lines = problems(*self.found(to=to))
        self.assertEqual(len(lines), len(wanted), lines)
        for line, part in zip(lines, wanted):
            self.assertIn(part, line)

    def test_as_recorded(self):
        self.expect({})

    def test_a_launch_too_many(self):
        self.expect({("steps", "lenet5", "rtx3090"): {"launches": 36}}, "lenet5 on rtx3090: 36 launches in a step, 35 are recorded")
        self.expect({("steps", "lenet5", "rtx3090"): {"launches": 34}})

    def test_bytes_too_many(self):
        self.expect({("steps", "lenet5", "rtx3090"): {"bytes": 9600001}}, "moves 9601 kB, 9600 are recorded")

    def test_registers(self):
        self.expect({("kernels", "matmul_gpu", "sm_86"): {"registers": 136}})
        self.expect({("kernels", "matmul_gpu", "sm_86"): {"registers": 137}}, "sm_86: matmul_gpu: 137 registers, 128 are recorded")

    def test_occupancy(self):
        self.expect({("kernels", "matmul_gpu", "gfx1100"): {"occupancy": 49}}, "an occupancy of 49 %, 50 % is recorded")
        found, recorded = self.found(to={("kernels", "matmul_gpu", "sm_86"): {"occupancy": 16}})
        self.assertEqual(len(problems(found, recorded)), 1)
        found.versions["sm_86"] = "ptxas 12.4.1"
        self.assertEqual(problems(found, recorded), [])

    def test_simd(self):
        self.expect({("kernels", "matmul_gpu", "dg2"): {"simd": 8}}, "dg2: matmul_gpu: SIMD8, SIMD16 is recorded")

    def test_spills(self):
        self.expect({("kernels", "matmul_gpu", "sm_86"): {"spills": 4}}, "sm_86: matmul_gpu: spills 4 bytes, 0 are recorded")
        self.expect({("kernels", "softmax_gpu", "dg2"): {"spills": 65}}, "spills 65 bytes, 64 are recorded")
        self.expect({("others", "pool", "dg2"): {"spills": 17}}, "dg2: pool of other programs: spills 17 bytes, 16 are recorded")

    def test_spills_of_other_programs_count_where_they_are_recorded(self):
        found, recorded = self.found()
        found.others = {("sort", "gfx1100"): KernelLimit(10, spills=4), ("sort", "dg2"): KernelLimit(10, simd=8, spills=4)}
        self.assertEqual(problems(found, recorded), ["dg2: sort of other programs: spills 4 bytes, 0 are recorded"])

    def test_what_is_not_recorded(self):
        found, recorded = self.found()
        found.kernels["new", "sm_86"] = KernelLimit(10, 100)
        found.steps["unet", "rtx3090"] = Step(1, 1)
        found.others["new", "dg2"] = KernelLimit(10, simd=8)
        self.assertEqual(problems(found, recorded),
                         ["unet on rtx3090: is not recorded (--write-limits)", "sm_86: new: is not recorded (--write-limits)"])

    def test_other_compilers_are_named_where_something_failed(self):
        found, recorded = self.found()
        found.versions["sm_86"] = "ptxas 14"
        self.assertEqual(problems(found, recorded), [])
        found.steps["lenet5", "rtx3090"] = Step(36, 0)
        self.assertIn("compiled by ptxas 14; recorded with ptxas 13.0.88", problems(found, recorded)[-1])

    def test_writing_takes_over_columns(self):
        limits = Limits.parse(RECORDED)
        self.assertEqual(Limits.parse(limits.text()), limits)
        limits.replace(Limits(kernels={("pad", "sm_86"): KernelLimit(10, 100)}))
        self.assertIn("kernel      sm_86  gfx1100  dg2\n", limits.text())
        self.assertNotIn(("matmul_gpu", "sm_86"), limits.kernels)
        self.assertIn(("matmul_gpu", "gfx1100"), limits.kernels)
        self.assertIn(("lenet5", "rtx3090"), limits.steps)
        self.assertIn(("pool", "dg2"), limits.others)
        limits.replace(Limits(others_targets=["dg2", "sm_86"]))
        self.assertEqual(Limits.parse(limits.text()).others_targets, ["dg2", "sm_86"])
        self.assertEqual(limits.others, {})


    def test_a_file_that_cannot_be_read_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "limits.txt"
            self.assertEqual(Limits.read(path, may_lack=True), Limits())
            with self.assertRaisesRegex(SystemExit, "^\\S+/limits.txt: No such file or directory$"):
                Limits.read(path)
            for text, line in (("kernel sm_86\npad 128\n", "line 2: pad: '128' is no limit"), ("network rtx3090\nlenet5 35\n", "line 2: lenet5: '35' is no limit"),
                               ("kernel dg2\npad SIMD\n", "line 2: pad: 'SIMD' is no limit"), ("spilling dg2\npad x\n", "line 2: pad: 'x' is no limit"),
                               ("\npad 128/33\n", "line 2: pad has 1 cells, and the head above it 0"), ("compilers sm_86\n", "line 1: compilers has 1 cells")):
                path.write_text(text)
                with self.assertRaisesRegex(SystemExit, f"^\\S+/limits.txt: {line}"):
                    Limits.read(path, may_lack=True)


class Compiler:
    """Stands for the compilers."""

    kernel, readers = Kernel, ()

    def __init__(self):
        self.runs = 0

    def version(self, maker):
        return "1"

    def compile(self, target, text, groups):
        self.runs += 1
        if "wrong" in text:
            raise Failed("/tmp/x/program.cl:7:1: error: use of undeclared identifier 'wrong'\nmore")
        return {"softmax_gpu": Kernel(20, 0, 100), "fused_add_mul": Kernel(30, len(text) // 100, 50)}


class Missing(unittest.TestCase):
    def test_without_ptxas_nothing_is_compiled(self):
        with tempfile.TemporaryDirectory() as root:
            (pathlib.Path(root) / "unpacked").mkdir()
            (pathlib.Path(root) / "unpacked/clang-19").write_text("1:19.1.7-3~deb12u1")
            with unittest.mock.patch("shutil.which", return_value=None), unittest.mock.patch("os.access", return_value=False):
                with self.assertRaisesRegex(Failed, "there is no ptxas"):
                    Compilers(root).version("nvidia")

    def test_compilers_that_cannot_be_unpacked_are_one_line(self):
        done = subprocess.CompletedProcess([], 100, "", "W: of no use\nE: Unable to locate package clang-15\n")
        with unittest.mock.patch("subprocess.run", return_value=done):
            with self.assertRaisesRegex(Failed, "^compilers could not be unpacked: E: Unable to locate package clang-15$"):
                unpacked([TARGETS["sm_86"]])

    def test_what_is_refused(self):
        for options, wanted in ((["--write-limits", "."], "--write-limits goes without FOLDER, --networks and --device"),
                                (["--jobs", "0", "."], "--jobs is 0, and 1 at least"), (["/nowhere"], "there is no folder /nowhere")):
            with unittest.mock.patch("sys.argv", ["offline_compile", *options]), contextlib.redirect_stderr(io.StringIO()) as said, \
                 self.assertRaises(SystemExit):
                offline_compile.main()
            self.assertIn("error: " + wanted, said.getvalue())

    def test_a_folder_without_programs(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            with unittest.mock.patch("sys.argv", ["offline_compile", "--targets", "sm_86", folder]), \
                 unittest.mock.patch("offline_compile.unpacked", return_value=pathlib.Path(folder)), \
                 unittest.mock.patch("offline_compile.Compilers", lambda _: Compiler()):
                self.assertEqual(offline_compile.main(), 1)
        self.assertEqual(said.getvalue(), "FAILED sm_86: there are no programs to compile\n")

    def test_without_a_compiler_programs_do_not_compile(self):
        with tempfile.TemporaryDirectory() as root:
            for target in ("gfx1100", "spirv"):
                with self.assertRaisesRegex(Failed, "clang-.. is not there"):
                    Compilers(root).compile(TARGETS[target], "kernel void f() {}", {})


class Compiling(unittest.TestCase):
    def setUp(self):
        self.compiler, self.programs, self.target = Compiler(), Programs(), TARGETS["sm_86"]
        self.cache = tempfile.TemporaryDirectory()
        self.addCleanup(self.cache.cleanup)

    def compile(self):
        return compile_all(self.programs, self.target, self.compiler, pathlib.Path(self.cache.name), 2)

    def test_a_compile_error(self):
        self.programs.texts = {"a": "wrong", "b": "wrong, too", "c": "right"}
        self.assertEqual(compile_errors(self.target, self.compile()),
                         ["sm_86: 2 programs do not compile: program:7:1: error: use of undeclared identifier 'wrong'"])

    def test_the_worst_of_a_kind(self):
        self.programs.texts = {"a": "right", "b": " " * 200}
        self.assertEqual(worst(self.programs, self.compile(), {"softmax_gpu"}),
                         {"softmax_gpu": KernelLimit(20, 100), "generated": KernelLimit(30, 50, None, 2)})

    def test_nothing_is_compiled_twice(self):
        self.programs.texts = {"a": "right", "b": "wrong"}
        first = self.compile()
        self.assertEqual(self.compile(), first)
        self.assertEqual(self.compiler.runs, 3)  # what failed is tried again
        self.programs.groups["a"]["softmax_gpu"] = (64, 0)
        self.compile()
        self.assertEqual(self.compiler.runs, 5)

    def test_programs_and_launches_of_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "12ab.cl").write_text("// -cl-std=CL1.2\nkernel void f() {}")
            (path / "launches").write_text("12ab f 64x1x1 16x2x1 0 -\n12ab f 64x1x1 64x1x1 512 7,1\n12ab g 9x1x1 0x0x0 0 -\n")
            self.programs.add(path)
        self.assertEqual(list(self.programs.texts), ["12ab"])
        self.assertEqual(self.programs.groups["12ab"], {"f": (64, 512), "g": (256, 0)})

    def test_kinds(self):
        tiles = "#define FORWARD 1\n#define RM 8\n#define RN 4\n#define TK 8\n#define TM 64\n#define TN 128\n"
        self.assertEqual(kind("conv2d_gpu", tiles, {"conv2d_gpu"}), "conv2d_gpu:64x128x8:8x4:forward")
        self.assertEqual(kind("conv2d_gpu", tiles + "#define PACKED 1\n", {"conv2d_gpu"}), "conv2d_gpu:64x128x8:8x4:forward:packed")
        self.assertEqual(kind("conv2d_depthwise_gpu", "#define DATA 1\n", {"conv2d_depthwise_gpu"}), "conv2d_depthwise_gpu:data")
        self.assertEqual(kind("pad", "", {"pad"}), "pad")
        self.assertEqual(kind("fused_mul", "", {"pad"}), "generated")


class Networks(unittest.TestCase):
    def test_items_that_are_networks(self):
        for item in ("keras-cnn-infer-b1", "resnet18-train-b16-f16", "gru-512-forward-b32", "lstm-128-gradient-b32", "lstm-by-hand-128-t200-b32",
                     "char-gpt-generate-b1", "attention-step-768-t1024-b1", "matmul-2048-f16"):
            self.assertTrue(NETWORK.fullmatch(item), item)

    def test_items_that_are_not_or_launch_what_another_does(self):
        for item in ("resnet18-forward-b16", "resnet18-infer-b1-compiled", "lstm-by-hand-128-t200-b32-compiled", "matmul-2048",
                     "linear-512-1000-b16-backward-data", "batch-norm-64-56-b16-train", "conv1d-64-64-1024-k3-s1-b16-train", "adam-25m",
                     "embedding-50000-512-b8192-backward"):
            self.assertFalse(NETWORK.fullmatch(item), item)


class Steps(unittest.TestCase):
    def test_the_second_half_repeats_a_step(self):
        self.assertEqual(len(period(list("peak.first") + list("abcab") * 6)), 5)

    def test_repetitions_within_a_step_are_none(self):
        self.assertEqual(len(period((["x"] + ["y"] * 20) * 5)), 21)

    def test_nothing_repeats(self):
        self.assertIsNone(period(list("abcdefgh")))
        self.assertIsNone(period([]))


class Reading(unittest.TestCase):
    def test_ptxas(self):
        log = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'pad' for 'sm_86'
ptxas info    : Function properties for pad
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 484 bytes cmem[0]
ptxas info    : Compiling entry function 'matmul_gpu' for 'sm_86'
ptxas info    : Function properties for matmul_gpu
    16 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 47 registers, used 1 barriers, 2560 bytes smem, 484 bytes cmem[0]
"""
        self.assertEqual(read_ptxas(log), {"pad": (Kernel(10), 0), "matmul_gpu": (Kernel(47, 64), 2560)})

    def test_amd(self):
        assembly = """\
amdhsa.kernels:
  - .args:
      - .name:           x
        .vgpr_count:     1
    .group_segment_fixed_size: 2560
    .name:           matmul_gpu
    .vgpr_count:     49
    .vgpr_spill_count: 3
  - .args:
      - .name:           y
    .group_segment_fixed_size: 0
    .name:           pad
    .vgpr_count:     5
    .vgpr_spill_count: 0
amdhsa.target:   amdgcn-amd-amdhsa--gfx1100
"""
        self.assertEqual(read_amd(assembly), {"matmul_gpu": (Kernel(49, 12), 2560), "pad": (Kernel(5), 0)})

    def test_intel(self):
        self.assertEqual(read_intel("//.kernel pad\n//.spill size 96\n", 8), {"pad": (Kernel(spills=96, simd=8), 0)})
        self.assertEqual(read_intel("//.kernel pad\n//.platform DG2\n", 32), {"pad": (Kernel(simd=32), 0)})

    def test_options(self):
        self.assertEqual(options_of("// -cl-std=CL1.2 -w\nkernel"), ["-cl-std=CL1.2", "-w"])

    def test_required_groups_reach_ptx(self):
        source = ("__attribute__((reqd_work_group_size((64 / 8 * (16 / 4)), 2, 1))) kernel void f(global int* x) {}\n"
                  "kernel void g(global int* x) {}\nkernel __attribute__((reqd_work_group_size(1, 1, 1))) void h(global int* x) {}")
        required = required_groups(source)
        self.assertEqual(required, {"f": (32, 2, 1), "h": (1, 1, 1)})
        ptx = ".entry f(\n\t.param .u64 a\n)\n{\n}\n.entry g(\n\t.param .u64 a\n)\n{\n}\n"
        self.assertEqual(with_groups(ptx, required), ptx.replace(")\n", ")\n.reqntid 32, 2, 1\n", 1))

    def test_occupancy(self):
        # NVIDIA's occupancy calculator says so, and LLVM of AMD's.
        self.assertEqual(TARGETS["sm_86"].chip.occupancy(128, 16896, 256), 33)
        self.assertEqual(TARGETS["sm_86"].chip.occupancy(129, 16896, 256), 16)
        self.assertEqual(TARGETS["sm_86"].chip.occupancy(20, 0, 64), 66)
        self.assertEqual(TARGETS["sm_86"].chip.occupancy(20, 48 << 10, 256), 33)
        self.assertEqual(TARGETS["sm_90"].chip.occupancy(64, 0, 256), 50)
        self.assertEqual(TARGETS["gfx906"].chip.occupancy(64, 0, 256), 40)
        self.assertEqual(TARGETS["gfx906"].chip.occupancy(20, 0, 64), 100)
        self.assertEqual(TARGETS["gfx1100"].chip.occupancy(120, 0, 256), 75)


class Loops(unittest.TestCase):
    def test_the_innermost_loop_with_the_most_multiply_adds(self):
        code = [Loop(1)] * 2 + [Loop(1, 1)] * 3 + [Loop(1, 0, 4)] + [Loop(1)] * 4 + [Loop(1, 1)] + [Loop(1)] * 4
        self.assertEqual(hottest(code, [(5, 2), (8, 6), (14, 0)]), Loop(4, 3, 4))
        self.assertEqual(hottest(code, [(14, 0)]), Loop(15, 4, 4))
        self.assertIsNone(hottest(code, []))

    def test_amd(self):
        assembly = """\
matmul_gpu:                             ; @matmul_gpu
\ts_load_b64 s[0:1], s[2:3], 0x0
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
\tv_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6
\tv_dual_fmac_f32 v1, v2, v3 :: v_dual_mov_b32 v7, 0
\tv_fma_f32 v1, v2, v3, v1
\tv_add_nc_u32_e32 v8, 1, v8             ; v_fmac_f32
\tv_fma_mix_f32 v1, v2, v3, v1
\tds_load_b128 v[8:11], v12
\tds_load_2addr_b32 v[8:9], v12 offset1:1
\tds_store_b32 v1, v2
\ts_delay_alu instid0(VALU_DEP_1)
\ts_waitcnt lgkmcnt(0)
\ts_cbranch_scc1 .LBB0_1
\ts_cbranch_scc0 .LBB0_2
.LBB0_2:
\ts_endpgm
.Lfunc_end0:
pad:
\ts_endpgm
.Lfunc_end1:
"""
        self.assertEqual(amd_loops(assembly), {"matmul_gpu": Loop(10, 4, 6), "pad": None})

    def test_nvidia(self):
        def instruction(opcode, *fields):
            word = opcode
            for value, place in fields:
                word |= value << place
            return (word & (1 << 128) - 1).to_bytes(16, "little")

        body = [instruction(0x223), instruction(0x423), instruction(0x984, (6, 73)), instruction(0x984, (5, 73)), instruction(0x918),
                instruction(0x210)]
        for arch, back in ((86, [((-112) & 0xffffffff, 32)]), (90, [((-28) & 0xff, 16), (((-28) >> 8) & (1 << 48) - 1, 34)])):
            to_itself = [((-16) & 0xffffffff, 32)] if arch == 86 else [((-4) & 0xff, 16), (((-4) >> 8) & (1 << 48) - 1, 34)]
            code = b"".join([instruction(0x202), *body, instruction(0x947, *back), instruction(0x94d), instruction(0x947, *to_itself)])
            self.assertEqual(nvidia_loop(code, arch), Loop(6, 2, 6), arch)

    def test_bars(self):
        good = Kernel(128, 0, 33, None, 620, 512, 128)
        self.assertEqual(below_bars("sm_86", "matmul_gpu", good), [])
        for change, part in (({"registers": 129}, "129 registers, 128 at most"), ({"spills": 4}, "spills 4 bytes"),
                             ({"operations": 690}, "512 multiply-adds among 690 operations of its loop, 75% are wanted"),
                             ({"words": 129}, "512 multiply-adds for 129 words of local memory, 4 for each")):
            lines = below_bars("sm_86", "matmul_gpu", dataclasses.replace(good, **change))
            self.assertEqual(len(lines), 1, lines)
            self.assertIn("sm_86: matmul_gpu: " + part, lines[0])
        self.assertEqual(below_bars("gfx1100", "matmul_gpu", dataclasses.replace(good, registers=144)), [])
        self.assertEqual(len(below_bars("sm_86", "matmul_gpu", Kernel(20))), 1)

    def test_bars_of_matrix_units(self):
        tile = "matmul_matrix_units_gpu:128x128x32:64x32"
        self.assertEqual(units_below_bars("sm_86", tile, KernelLimit(168, 33)), [])
        self.assertEqual(units_below_bars("sm_86", tile, KernelLimit(169, 33)), [f"sm_86: {tile}: 169 registers, 168 at most are wanted"])
        self.assertEqual(units_below_bars("sm_86", tile, KernelLimit(126, 33, spills=8)), [f"sm_86: {tile}: spills 8 bytes"])
        self.assertEqual(units_below_bars("sm_75", tile, KernelLimit(170, 25)), [])
        # Half as many items have twice as many sums; small tiles have no more than others.
        self.assertNotEqual(units_below_bars("sm_86", "matmul_matrix_units_gpu:32x32x32:16x16", KernelLimit(169, 33)), [])
        self.assertEqual(units_below_bars("sm_86", "matmul_matrix_units_gpu:128x128x32:64x64:transpose_a", KernelLimit(250, 12)), [])
        self.assertEqual(units_below_bars("sm_86", "matmul_gpu:128x128x8:8x8", KernelLimit(169, 16)), [])


if __name__ == "__main__":
    unittest.main()

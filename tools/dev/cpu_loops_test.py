#!/usr/bin/env python3
"""Checks that cpu_loops.py sees what it is there to see, without a compiler."""

import contextlib
import io
import pathlib
import re
import subprocess
import tempfile
import unittest
import unittest.mock

import cpu_loops
from cpu_loops import Limits, LoopLimit, gone, hot_programs, kind, problems, worst
from cpu_targets import (LINKED, PROGRAM, TARGETS, CpuCompiler, CpuKernel, LoopUse, arm_instruction, functions_of, kernel_names, kernels_of, operands,
                         with_library, x86_instruction)
from offline_compile import Programs, compile_all, compile_errors
from offline_targets import Failed

# As clang writes it, shortened: a product's loop, in which a sum is spilled, one that copies, and one around it with a multiply-add of its own.
X86 = """\
matmul_cpu_item:                        # @matmul_cpu_item
# %bb.0:
\tvmovups\t%ymm7, 32(%rsp)                # 32-byte Spill
\tvfmadd231ps\t%ymm3, %ymm4, %ymm5
.LBB0_1:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB0_2 Depth 2
\tvfmadd213ps\t%ymm3, %ymm4, %ymm5        # ymm5 = (ymm4 * ymm5) + ymm3
\tmovq\t8(%rsp), %rax                   # 8-byte Reload
.LBB0_2:                                #   Parent Loop BB0_1 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
\tvbroadcastss\t(%rax,%rcx,4), %ymm0
\tvfmadd231ps\t(%rbx), %ymm0, %ymm1       # ymm1 = (ymm0 * mem) + ymm1
\tvmovups\t32(%rsp), %ymm2                # 32-byte Reload
\tvfmadd231ps\t%ymm0, %ymm3, %ymm2        # ymm2 = (ymm3 * ymm0) + ymm2
\tvmovups\t%ymm2, 32(%rsp)                # 32-byte Spill
\tprefetcht0\t(%rbx)
\tleaq\t64(%rbx), %rbx
\tjge\t.LBB0_4
# %bb.3:                                #   in Loop: Header=BB0_2 Depth=2
\tvfmadd231ps\t64(%rsp), %ymm3, %ymm4     # 32-byte Folded Reload
                                        # ymm4 = (ymm3 * mem) + ymm4
\tjmp\t.LBB0_2
.LBB0_4:                                #   in Loop: Header=BB0_1 Depth=1
\tvfmadd231ps\t96(%rsp), %ymm3, %ymm4     # 32-byte Folded Reload
\tjne\t.LBB0_1
.LBB0_5:                                # =>This Inner Loop Header: Depth=1
\tvmovups\t(%rax), %ymm0
\tvmovups\t%ymm0, (%rcx)
\tjne\t.LBB0_5
# %bb.6:
\tretq
.Lfunc_end0:
matmul_cpu:                             # @matmul_cpu
\tjmp\tmatmul_cpu_item                 # TAILCALL
.Lfunc_end1:
"""

ARM = """\
matmul_cpu:                             // @matmul_cpu
// %bb.0:
\tstr\tq1, [sp, #16]                   // 16-byte Folded Spill
.LBB0_1:                                // =>This Inner Loop Header: Depth=1
\tldp\tq0, q16, [x0, #32]
\tldr\tq1, [sp, #16]                   // 16-byte Folded Reload
\tld1r\t{ v2.4s }, [x1], #4
\tfmla\tv3.4s, v0.4s, v2.4s
\tfmla\tv4.4s, v0.4s, v2.s[0]
\tfmla\tv1.4s, v16.4s, v2.4s
\tfmla\tv5.2s, v16.2s, v2.2s
\tprfm\tpldl1keep, [x0]
\tstp\tq1, q5, [sp, #16]               // 32-byte Folded Spill
\tb.ne\t.LBB0_1
// %bb.2:
\tret
.Lfunc_end0:
"""

# A transform writes what it multiplies and adds; of remainders clang makes loops of single floats.
TWO_LOOPS = """\
k:
.LBB0_1:                                # =>This Inner Loop Header: Depth=1
\tvmovups\t(%rax), %zmm1
\tvfmadd231ps\t%zmm3, %zmm4, %zmm1
\tvmovups\t(%rax), %zmm2
\tvfmadd231ps\t%zmm3, %zmm4, %zmm2
\tvmovups\t%zmm2, (%rsp)                  # 64-byte Spill
\tjne\t.LBB0_1
.LBB0_2:                                # =>This Inner Loop Header: Depth=1
\tvfmadd231ps\t(%rax), %zmm4, %zmm17
\tjne\t.LBB0_2
.LBB0_3:                                # =>This Inner Loop Header: Depth=1
\tvfmadd231ss\t(%rax), %xmm4, %xmm1
\tvfmadd231ss\t(%rax), %xmm4, %xmm2
\tvfmadd231ss\t(%rax), %xmm4, %xmm3       # 4-byte Folded Reload
\tjne\t.LBB0_3
.Lfunc_end0:
"""

RECORDED = """\
# a comment
kernel                            znver3        arm64
matmul_cpu{lanes=8,rows=6}        0.67/15x8     -
conv2d_cpu{lanes=8}               0.75/16x8/4+9 0.50/30x4+1

compilers znver3   clang 15.0.6
"""


class Assembly(unittest.TestCase):
    def test_x86(self):
        item = functions_of(X86, False)["matmul_cpu_item"]
        self.assertEqual(item.inner, [LoopUse(multiply_adds=3, lanes=8, sums=3, memory=5, spills=3, registers=5)])
        self.assertEqual(item.outer, [LoopUse(multiply_adds=2, lanes=8, sums=1, memory=2, spills=2, registers=3)])

    def test_arm(self):
        kernel = functions_of(ARM, True)["matmul_cpu"]
        self.assertEqual(kernel.inner, [LoopUse(multiply_adds=4, lanes=2, sums=4, memory=6, spills=3, registers=7)])
        self.assertEqual(kernel.outer, [])

    def test_a_kernels_loops_are_in_what_it_calls(self):
        self.assertEqual(kernels_of(X86, False, {"matmul_cpu", "matmul_sum_cpu"}), {"matmul_cpu": CpuKernel(3, 8, 5, 3, 5)})
        for call in ("callq\tmatmul_cpu_item", "bl\tmatmul_cpu_item", "b\tmatmul_cpu_item"):
            called = X86.replace("jmp\tmatmul_cpu_item ", call + " ")
            self.assertEqual(functions_of(called, False)["matmul_cpu"].calls, {"matmul_cpu_item"}, call)

    def test_what_is_called_calls_others(self):
        parts = TWO_LOOPS.replace("k:", "part:") + X86.replace("\tretq", "\tcallq\tpart\n\tcallq\tmatmul_cpu\n\tcallq\texpf@PLT\n\tretq")
        self.assertEqual(functions_of(parts, False)["matmul_cpu_item"].calls, {"part", "matmul_cpu"})
        self.assertEqual(kernels_of(parts, False, {"matmul_cpu"})["matmul_cpu"], CpuKernel(3, 8, 5, 3, 5, other_spills=1))

    def test_the_hot_loop_holds_sums(self):
        self.assertEqual(kernels_of(TWO_LOOPS, False, {"k"}), {"k": CpuKernel(1, 16, 1, 0, 2, other_spills=1)})

    def test_a_hot_loop_that_spills_some_sums_is_still_it(self):
        spilled = TWO_LOOPS + X86.replace("matmul_cpu_item", "k_item").replace("\tleaq\t64(%rbx), %rbx", "\tvmovaps\t%ymm1, %ymm4\n\tvmovaps\t%ymm2, %ymm1")
        spilled = spilled.replace("k:\n", "k:\n\tcallq\tk_item\n", 1)
        self.assertEqual(kernels_of(spilled, False, {"k"})["k"], CpuKernel(3, 8, 5, 3, 5, other_spills=1))

    def test_without_vectors_in_innermost_loops_those_around_count(self):
        scalar = X86.replace("%ymm0, %ymm1 ", "%xmm0, %xmm1 ").replace("(%rbx), %ymm0, %ymm1", "(%rbx), %xmm0, %xmm1")
        scalar = re.sub(r"(This Inner Loop Header: Depth=2\n)(.*?)(?=\.LBB0_4)", lambda part: part[1] + "\tvfmadd231ss\t%xmm1, %xmm2, %xmm3\n", scalar, flags=re.S)
        self.assertEqual(kernels_of(scalar, False, {"matmul_cpu"}), {"matmul_cpu": CpuKernel(2, 8, 2, 2, 3)})

    def test_a_kernel_without_multiply_adds(self):
        self.assertEqual(kernels_of(X86, False, {"matmul_cpu_item"})["matmul_cpu_item"].multiply_adds, 3)
        self.assertEqual(kernels_of("copy:\n\tretq\n.Lfunc_end0:\n", False, {"copy"}), {"copy": CpuKernel()})

    def test_operands(self):
        self.assertEqual(operands("-480(%rcx,%rax,4), %ymm0, %ymm2"), ["-480(%rcx,%rax,4)", "%ymm0", "%ymm2"])
        self.assertEqual(operands("{ v0.4s, v1.4s }, [x0, #16]"), ["{ v0.4s, v1.4s }", "[x0, #16]"])

    def test_loads_and_stores_of_x86(self):
        for text, memory in (("vmovups\t%ymm0, (%rax)", 1), ("vmovups\t(%rax), %ymm0", 1), ("vaddps\t(%rax), %ymm1, %ymm0", 1),
                             ("addl\t$4, 16(%rsp)", 2), ("incl\t(%rsp)", 2), ("cmpl\t$4, 16(%rsp)", 1), ("leaq\t8(%rax), %rbx", 0),
                             ("prefetcht0\t(%rax)", 0), ("vextractf128\t$1, %ymm0, (%rax)", 1), ("vmovntps\t%zmm0, (%rax)", 1),
                             ("vmovaps\t.LCPI0_1(%rip), %ymm1", 1), ("jne\t.LBB0_1", 0), ("callq\texpf@PLT", 0), ("retq", 0)):
            self.assertEqual(x86_instruction(text, "").memory, memory, text)

    def test_loads_and_stores_of_arm(self):
        for text, memory in (("ldr\tq0, [x0]", 1), ("ldp\tq0, q1, [x0]", 2), ("str\tq0, [x0], #16", 1), ("stp\tq0, q1, [sp]", 2),
                             ("ld1\t{ v0.4s, v1.4s }, [x0]", 1), ("prfm\tpldl1keep, [x0]", 0), ("fmul\tv0.4s, v1.4s, v2.4s", 0)):
            self.assertEqual(arm_instruction(text, "").memory, memory, text)

    def test_multiply_adds(self):
        for read, text, lanes in ((x86_instruction, "vfmadd231ps\t%zmm1, %zmm2, %zmm3", 16), (x86_instruction, "vfnmadd213ps\t(%rax), %xmm2, %xmm3", 4),
                                  (x86_instruction, "vfmadd231ps\t(%rax){1to16}, %zmm2, %zmm31", 16), (x86_instruction, "vfmadd231ss\t(%rax), %xmm2, %xmm3", 1),
                                  (x86_instruction, "vfmadd231pd\t%ymm1, %ymm2, %ymm3", 0), (x86_instruction, "vmulps\t%ymm1, %ymm2, %ymm3", 0),
                                  (arm_instruction, "fmla\tv0.4s, v1.4s, v2.s[3]", 4), (arm_instruction, "fmls\tv0.2s, v1.2s, v2.2s", 2),
                                  (arm_instruction, "fmadd\ts0, s1, s2, s0", 1), (arm_instruction, "fmadd\td0, d1, d2, d0", 0),
                                  (arm_instruction, "fmla\tv0.2d, v1.2d, v2.2d", 0)):
            self.assertEqual(read(text, "").lanes, lanes, text)


class Records(unittest.TestCase):
    def expect(self, key, limit, *wanted):
        found = Limits.parse(RECORDED)
        found.kernels[key] = limit and LoopLimit.parse(limit)
        lines = problems(found, Limits.parse(RECORDED))
        self.assertEqual(lines, list(wanted))

    def test_as_recorded_or_better(self):
        self.expect(("conv2d_cpu{lanes=8}", "znver3"), "0.75/16x8/4+9")
        self.expect(("conv2d_cpu{lanes=8}", "znver3"), "0.74/15x16/3+8")

    def test_more_than_recorded(self):
        key, where = ("conv2d_cpu{lanes=8}", "znver3"), "znver3: conv2d_cpu{lanes=8}: "
        self.expect(key, "0.76/16x8/4+9", where + "0.76 loads and stores for each multiply-add of the hot loop, 0.75 are recorded")
        self.expect(key, "0.75/17x8/4+9", where + "17 registers in the hot loop, 16 are recorded")
        self.expect(key, "0.75/16x4/4+9", where + "multiply-adds of 4 lanes in the hot loop, 8 are recorded")
        self.expect(key, "0.75/16x8/5+9", where + "5 spills in the hot loop, 4 are recorded")
        self.expect(key, "0.75/16x8/4+10", where + "10 spills in another loop, 9 are recorded")
        self.expect(("matmul_cpu{lanes=8,rows=6}", "znver3"), "0.67/15x8/1", "znver3: matmul_cpu{lanes=8,rows=6}: 1 spills in the hot loop, 0 are recorded")

    def test_a_loop_that_is_gone_and_one_that_is_new(self):
        self.expect(("conv2d_cpu{lanes=8}", "znver3"), None, "znver3: conv2d_cpu{lanes=8}: no loop multiplies and adds any more")
        self.expect(("pack{lanes=8}", "znver3"), None)
        self.expect(("conv2d_cpu{lanes=16}", "arm64"), "0.67/15x8", "arm64: conv2d_cpu{lanes=16}: is not recorded (--all --write-limits)")

    def test_recorded_kinds_that_are_gone(self):
        found, recorded = Limits.parse(RECORDED), Limits.parse(RECORDED)
        found.versions = {"znver3": "clang-15 15.0.6"}
        self.assertEqual(gone(found, recorded), [])
        del found.kernels["conv2d_cpu{lanes=8}", "znver3"], found.kernels["conv2d_cpu{lanes=8}", "arm64"]
        self.assertEqual(gone(found, recorded), ["znver3: recorded, but not found any more (--all --write-limits): conv2d_cpu{lanes=8}"])
        recorded.kernels.update({(name, "znver3"): LoopLimit(1, 1, 8) for name in "abcd"})
        self.assertEqual(gone(found, recorded), ["znver3: recorded, but not found any more (--all --write-limits): a, b, c and 2 more"])

    def test_lines_that_are_no_limits(self):
        head = "# x\nkernel znver3 arm64\n"
        for text, wanted in ((head + "k{} 0.67/15 -", "line 3: k{}: '0.67/15' is no limit"), ("k{} 0.67/15x8", "line 1: k{} has 1 cells, and the head above it 0"),
                             (head + "k{} 0.67/15x8", "line 3: k{} has 1 cells, and the head above it 2"),
                             (head + "compilers", "line 3: compilers has 0 cells, and the head above it 2")):
            with self.assertRaises(ValueError) as raised:
                Limits.parse(text)
            self.assertEqual(str(raised.exception), wanted)

    def test_another_compiler_is_named_where_something_failed(self):
        found, recorded = Limits.parse(RECORDED), Limits.parse(RECORDED)
        found.versions["znver3"] = "clang 16"
        self.assertEqual(problems(found, recorded), [])
        found.kernels["new{}", "znver3"] = LoopLimit(1, 1, 8)
        self.assertEqual(problems(found, recorded)[-1], "znver3: compiled by clang 16; recorded with clang 15.0.6")

    def test_writing_takes_over_columns(self):
        limits = Limits.parse(RECORDED)
        self.assertEqual(Limits.parse(limits.text()), limits)
        limits.replace(Limits({("pad{}", "znver3"): LoopLimit(1, 2, 8), ("none{}", "znver3"): None}))
        self.assertEqual(set(limits.kernels), {("pad{}", "znver3"), ("conv2d_cpu{lanes=8}", "arm64")})
        self.assertEqual(Limits.parse(limits.text()), limits)

    def test_the_worst_of_a_kind(self):
        programs = Programs()
        programs.texts = {"a": "#define VW 8\nx", "b": "#define VW 8\ny", "c": "#define VW 8\nz", "d": "?"}
        results = {"a": {"k": CpuKernel(12, 8, 8, 0, 16, 3)}, "b": {"k": CpuKernel(12, 8, 9, 1, 15), "pack": CpuKernel()}, "c": {"k": CpuKernel()},
                   "d": "does not compile"}
        self.assertEqual(worst(programs, results), {"k{lanes=8}": LoopLimit(0.75, 16, 8, 1, 3), "pack{lanes=8}": None})


KERNEL = """\
// void helper() of kernel void name(PARAMETERS)
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_cpu(IN(a)) {}
"""


class Kinds(unittest.TestCase):
    def test_the_programs_defines_count_and_not_the_kernels(self):
        text = "// -cl-std=CL1.2 -w\n#define BODY a; \\\n  b;\n#define ROWS 6\n#define TYPE_a f16\n#define TYPE_b f32\n#define VW 8\n#define FLIP 1\n// x\n#define TILE 9\n"
        self.assertEqual(kind("matmul_cpu", text + KERNEL), "matmul_cpu{lanes=8,rows=6,flip,f16}")
        self.assertEqual(kind("matmul_cpu", KERNEL), "matmul_cpu{}")

    def test_names_in_comments_are_no_kernels(self):
        self.assertEqual(kernel_names(KERNEL), {"matmul_cpu"})

    def test_one_program_of_each_kind(self):
        programs = Programs()
        programs.texts = {"a": "#define VW 8\n" + KERNEL, "b": "#define VW 8\n" + KERNEL + "longer", "c": "#define VW 4\n" + KERNEL,
                          "d": KERNEL.replace("matmul_cpu", "softmax_cpu")}
        both = "#define VW 2\n" + KERNEL + KERNEL.replace("matmul_cpu", "conv2d_cpu")
        programs.texts.update(both=both, one="#define VW 2\n" + KERNEL)
        self.assertEqual(set(hot_programs(programs, False).texts), {"b", "c", "both"})
        self.assertEqual(set(hot_programs(programs, True).texts), {"a", "b", "c", "both", "one"})


class Compiling(unittest.TestCase):
    def clang(self, root, assembly=None, error=""):
        """Stands for both versions of clang: a compiler that keeps what it was asked for, and says it."""
        (root / "unpacked").mkdir()
        for version in ("15", "19"):
            (root / f"unpacked/clang-{version}").write_text(f"1:{version}.0.6-4+b1")

        def run(command, **_):
            words = [str(word) for word in command]
            self.asked.append(words)
            self.sources.append(pathlib.Path(words[-1]).read_text())
            if not error:
                made = assembly if words[-1].endswith(".ll") else "attributes #4 = { hot noinline }\n"
                pathlib.Path(words[words.index("-o") + 1]).write_text(made)
            return subprocess.CompletedProcess(command, 1 if error else 0, "", error)

        self.asked, self.sources = [], []
        return unittest.mock.patch("subprocess.run", run)

    def test_a_program_that_does_not_compile(self):
        programs = Programs()
        programs.texts = {"a": KERNEL}
        with tempfile.TemporaryDirectory() as root, self.clang(pathlib.Path(root), error="/tmp/x/program.cl:2:1: error: unknown type name 'IN'\n1 error generated."):
            results = compile_all(programs, TARGETS["znver3"], CpuCompiler(root), pathlib.Path(root), 1)
        self.assertEqual(compile_errors(TARGETS["znver3"], results), ["znver3: a program does not compile: program:2:1: error: unknown type name 'IN'"])

    def test_what_clang_is_asked_for(self):
        with tempfile.TemporaryDirectory() as root, self.clang(pathlib.Path(root), ARM):
            self.assertEqual(CpuCompiler(root).compile(TARGETS["arm64"], KERNEL, {}), {"matmul_cpu": CpuKernel(4, 2, 6, 3, 7)})
            first, second = self.asked
            self.assertEqual(first[0], root + "/root/usr/lib/llvm-15/bin/clang")
            for command, options in ((first, PROGRAM), (second, LINKED)):
                self.assertIn("-march=armv8-a", command)
                self.assertEqual([word for word in command if word in options], list(options))
            self.assertIn("vload##N", self.sources[0])
            self.assertEqual(self.sources[1], "attributes #4 = { hot alwaysinline }\n")
            CpuCompiler(root).compile(TARGETS["znver4"], KERNEL, {})
            self.assertIn("llvm-19", self.asked[2][0])
            self.assertIn("-march=znver4", self.asked[2])

    def test_only_the_librarys_functions_are_inlined(self):
        code = "define internal float @f() #4 {\nattributes #4 = { hot noinline nounwind }\nattributes #5 = { noinline nounwind }\n"
        self.assertEqual(with_library(code), code.replace("hot noinline", "hot alwaysinline"))

    def test_versions_and_a_compiler_that_is_missing(self):
        with tempfile.TemporaryDirectory() as root:
            with self.clang(pathlib.Path(root)):
                self.assertEqual(CpuCompiler(root).version("cpu-new"), "clang-19 19.0.6")
            with self.assertRaisesRegex(Failed, "llvm-15/bin/clang is not there"):
                CpuCompiler(root).compile(TARGETS["znver3"], KERNEL, {})

    def whole(self, *options, program="#define VW 8\n" + KERNEL, found=CpuKernel(3, 8, 5, 3, 5), given=True):
        """What cpu_loops.py says, of a folder with a program where one is given, and its exit code."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            path = pathlib.Path(folder)
            (path / "a.cl").write_text(program)
            limits = path / "limits.txt"
            limits.write_text("kernel znver3\nmatmul_cpu{lanes=8} 1.67/5x8/2\ngone{} 1.67/5x8\n")
            command = ["cpu_loops", "--targets", "znver3", "--limits", str(limits), "--jobs", "1", *options, *[folder] * given]
            with unittest.mock.patch("sys.argv", command), unittest.mock.patch("cpu_loops.unpacked", return_value=path), self.clang(path), \
                 unittest.mock.patch.object(CpuCompiler, "compile", lambda *_: {"matmul_cpu": found}):
                code = cpu_loops.main()
        return said.getvalue(), code

    def test_the_whole_names_what_exceeds(self):
        said, code = self.whole()
        self.assertEqual(code, 1)
        self.assertIn("FAILED znver3: matmul_cpu{lanes=8}: 3 spills in the hot loop, 2 are recorded", said)
        self.assertNotIn("1.67 are recorded", said)

    def test_kinds_that_a_part_lacks_are_not_gone(self):
        for options in ((), ("--all",)):
            said, code = self.whole(*options, found=CpuKernel(3, 8, 5, 2, 5))
            self.assertEqual((code, "FAILED" in said), (0, False), said)

    def test_with_all_kinds_that_are_gone_fail(self):
        with tempfile.TemporaryDirectory() as build:
            for file in ("tests/null_opencl.icd", "tools/clnet-bench"):
                (pathlib.Path(build) / file).parent.mkdir()
                (pathlib.Path(build) / file).touch()
            programs = Programs()
            programs.texts = {"a": "#define VW 8\n" + KERNEL}
            with unittest.mock.patch("offline_compile.items_of", return_value=["x"]), unittest.mock.patch("cpu_loops.dump", return_value=programs):
                for options, failed in (([], []), (["--all"], ["FAILED znver3: recorded, but not found any more (--all --write-limits): gone{}"])):
                    said, code = self.whole("--build", build, *options, found=CpuKernel(3, 8, 5, 2, 5), given=False)
                    self.assertEqual((code, said.splitlines()[1:]), (len(failed), failed))

    def test_without_programs_nothing_is_checked(self):
        said, code = self.whole(program=KERNEL.replace("matmul_cpu", "softmax_cpu"))
        self.assertEqual((code, said.splitlines()[1:]), (1, ["FAILED znver3: there are no programs to compile"]))

    def test_what_is_refused(self):
        for options, wanted in ((["--write-limits"], "--write-limits needs --all, without FOLDER, --networks and --device"),
                                (["--write-limits", "--all", "."], "--write-limits needs --all"),
                                (["--write-limits", "--all", "--networks", "x"], "--write-limits needs --all"),
                                (["--write-limits", "--all", "--device", "cpu4"], "--write-limits needs --all"),
                                (["--jobs", "0", "."], "--jobs is 0, and 1 at least"), (["/nowhere"], "there is no folder /nowhere")):
            with unittest.mock.patch("sys.argv", ["cpu_loops", *options]), contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
                cpu_loops.main()
            self.assertIn("error: " + wanted, said.getvalue())


if __name__ == "__main__":
    unittest.main()

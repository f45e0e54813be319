"""CPUs that are not there: how cpu_loops.py has clang compile clnet's programs for them, and what it reads from the assembly."""

import dataclasses
import pathlib
import re
import tempfile

from offline_loops import functions
from offline_targets import Compilers

ROOT = pathlib.Path(__file__).resolve().parents[2]
# By the makers of targets: Debian 12's PoCL has the LLVM of clang 15, which does not know Zen 4.
CLANG = {"cpu": "15", "cpu-new": "19"}

# As PoCL 3.1 calls it (lib/CL/pocl_llvm_build.cc and pocl_llvm_wg.cc of its source): a program is optimized without its library and without
# vectors of its own, then with it. LLVM takes kernels, as OpenCL calls them, for x86 only: they become plain functions.
COMMON = ("-w", "-fno-builtin", "-fno-math-errno", "-fPIC", "-fno-crash-diagnostics")
PROGRAM = ("-x", "cl", "-cl-std=CL1.2", "-D_OPENCL_H_", "-DPOCL_DEVICE_ADDRESS_BITS=64", "-Xclang", "-finclude-default-header", "-Xclang",
           "-cl-ext=-all,+cl_khr_fp64,+cl_khr_byte_addressable_store", "-Dkernel=", "-Dreqd_work_group_size(x,y,z)=", "-O2", "-fno-unroll-loops",
           "-fno-vectorize", "-fno-slp-vectorize", "-emit-llvm")
LINKED = ("-x", "ir", "-O3")


@dataclasses.dataclass(frozen=True)
class CpuTarget:
    name: str  # as clang's -march knows it, but for ARM's
    device: str  # of the null driver
    what: str
    triple: str = "x86_64-pc-linux-gnu"
    march: str = ""
    maker: str = "cpu"

    @property
    def is_arm(self):
        return self.triple.startswith("aarch64")


TARGETS = {
    target.name: target
    for target in (
        CpuTarget("znver3", "cpu8", "AMD Zen 3: AVX2"),
        CpuTarget("haswell", "cpu8", "Intel before AVX-512: AVX2"),
        CpuTarget("skylake-avx512", "cpu16", "Intel's servers: AVX-512"),
        CpuTarget("znver4", "cpu16", "AMD Zen 4: AVX-512 in two halves", maker="cpu-new"),
        CpuTarget("sapphirerapids", "cpu16", "Intel's servers from 2023 on: AVX-512"),
        CpuTarget("arm64", "cpu4", "any 64-bit ARM: NEON", "aarch64-linux-gnu", "armv8-a"),
    )
}


@dataclasses.dataclass
class LoopUse:
    """What an innermost loop does, each time round."""

    multiply_adds: int = 0  # instructions, in f32
    lanes: int = 0  # of the narrowest of them
    sums: int = 0  # those that add to what stays from one time to the next: nothing else writes it
    memory: int = 0  # loads and stores
    spills: int = 0  # of these, those that are there because registers ran out
    registers: int = 0  # of vectors


@dataclasses.dataclass
class CpuKernel:
    """A kernel's hot loop, and the most spills of its other loops that multiply and add. Without any: no multiply-adds."""

    multiply_adds: int = 0
    lanes: int = 0
    memory: int = 0
    spills: int = 0
    registers: int = 0
    other_spills: int = 0


@dataclasses.dataclass
class Instruction:
    memory: int = 0
    lanes: int = 0  # of a multiply-add
    adds_to: str = ""  # the register, where that is what it multiplies nothing with
    written: tuple = ()  # but for reloads and copies: a sum that is spilled or goes from register to register stays one
    registers: tuple = ()
    spills: int = 0


def operands(text):
    """What is between commas, but for those in brackets."""
    return [operand.strip() for operand in re.split(r",(?![^(\[{]*[)\]}])", text) if operand.strip()]


# Spills and reloads as LLVM's comments tell them.
SPILL = re.compile(r"-byte (?:Folded )?(?:Spill|Reload)")
X86_VECTOR = re.compile(r"%([xyz])mm(\d+)")
X86_LANES = {"x": 4, "y": 8, "z": 16}
# Of instructions whose last operand is memory: what only stores there, and what only reads it. Others do both.
X86_STORES = ("mov", "vmov", "vextract", "vpextr", "vpmov", "vcvtps2ph", "vcompress", "vpcompress", "set", "kmov")
X86_READS = ("cmp", "test", "vucomi", "vcomi", "push", "bt", "imul", "mul", "div", "idiv")


def x86_instruction(text, note):
    """In AT&T's syntax: the last operand is what is written."""
    name, _, rest = text.partition("\t")
    given = operands(rest)
    found = Instruction(registers=tuple(number for _, number in X86_VECTOR.findall(rest)), spills=bool(SPILL.search(note)))
    if any("(" in operand for operand in given) and not name.startswith(("lea", "prefetch", "nop", "call", "jmp")):
        found.memory = 2 if "(" in given[-1] and not name.startswith(X86_STORES + X86_READS) else 1
    target = X86_VECTOR.match(given[-1]) if given else None
    if target:
        kept = name.startswith("vmov") and (found.spills or not found.memory)
        found.written = () if kept else (target[2],)
        if re.fullmatch(r"vfn?m(add|sub)(132|213|231)[ps]s", name):
            found.lanes = 1 if name.endswith("ss") else X86_LANES[target[1]]
            found.adds_to = target[2] if "231" in name else ""
    return found


def arm_instruction(text, note):
    """The first operand is what is written, of loads all registers."""
    name, _, rest = text.partition("\t")
    given, vectors = operands(rest), r"\b[bhsdqv](\d+)\b"
    found = Instruction(registers=tuple(re.findall(vectors, rest)))
    if re.match(r"ld|st", name):
        found.memory = 2 if name in ("ldp", "stp", "ldnp", "stnp") else 1
    found.spills = found.memory if SPILL.search(note) else 0
    if given and not name.startswith("st"):
        loads = name.startswith("ld")
        found.written = () if found.spills and loads or name == "mov" else tuple(re.findall(vectors, rest if loads else given[0]))
        target = re.match(r"v(\d+)\.(\d)s", given[0])
        if name in ("fmla", "fmls") and target:
            found.adds_to, found.lanes = target[1], int(target[2])
        elif name in ("fmadd", "fmsub", "fnmadd", "fnmsub") and given[0].startswith("s"):
            found.lanes = 1
    return found


def loop_use(instructions):
    adds = [instruction for instruction in instructions if instruction.lanes]
    others = {register for instruction in instructions for register in instruction.written if register != instruction.adds_to}
    return LoopUse(len(adds), min((add.lanes for add in adds), default=0), sum(add.adds_to not in others | {""} for add in adds),
                   sum(instruction.memory for instruction in instructions), sum(instruction.spills for instruction in instructions),
                   len({register for instruction in instructions for register in instruction.registers}))


# What calls or jumps to another function, as x86 and ARM write it.
CALL = re.compile(r"(?:callq?|jmpq?|bl|b)\t([\w.]+)")


@dataclasses.dataclass
class Function:
    """What is counted of a function: its loops that multiply and add, the innermost ones and the others without those that they hold."""

    inner: list
    outer: list
    calls: set  # the program's functions


def functions_of(assembly, is_arm):
    """Name -> Function. LLVM tells of each block in which loop it is."""
    read, comment = (arm_instruction, "//") if is_arm else (x86_instruction, "#")
    texts, found = functions(assembly, comment), {}
    for name, blocks in texts.items():
        inner, outer, loop_of = {}, {}, {}
        for block in blocks:
            if "Loop Header: Depth" in block.note:
                loop_of[block.label] = (inner if "This Inner Loop Header" in block.note else outer).setdefault(block.label, [])
        for block in blocks:
            within = re.search(r"in Loop: Header=(\w+)", block.note)
            loop_of.get(block.label if block.label in loop_of else within and within[1], []).extend(read(*words) for words in block.instructions)
        uses = [[use for use in map(loop_use, loops.values()) if use.multiply_adds] for loops in (inner, outer)]
        called = {call[1] for block in blocks for text, _ in block.instructions if (call := CALL.match(text))}
        found[name] = Function(*uses, called & texts.keys() - {name})
    return found


def with_called(functions, name):
    """The function and all that it calls, in one order."""
    found, left = [], [name]
    while left:
        name = left.pop()
        if name not in found:
            found.append(name)
            left += sorted(functions[name].calls)
    return [functions[name] for name in found]


def kernels_of(assembly, is_arm, names):
    """Those of a program, with the loops of the functions that they call. The hot loop multiplies and adds most, of those that add to sums
    for a third or more (some that are spilled look like others), if there are such, and of innermost ones, if there are vectors in these."""
    functions, found = functions_of(assembly, is_arm), {}
    for name in functions.keys() & names:
        own = with_called(functions, name)
        inner, outer = [loop for function in own for loop in function.inner], [loop for function in own for loop in function.outer]
        vectors = [loop for loop in inner if loop.lanes > 1] or [loop for loop in outer if loop.lanes > 1]
        own = sorted(vectors or inner, key=lambda loop: (3 * loop.sums >= loop.multiply_adds, loop.multiply_adds))
        hot = own.pop() if own else LoopUse()
        found[name] = CpuKernel(hot.multiply_adds, hot.lanes, hot.memory, hot.spills, hot.registers,
                                max((loop.spills for loop in own), default=0))
    return found


class CpuCompiler(Compilers):
    """clang, with the declarations that clnet gives PoCL."""

    kernel = CpuKernel
    builtins = (ROOT / "tools/dev/cpu_builtins.clh", ROOT / "kernels/builtins.clh")
    readers = (pathlib.Path(__file__), ROOT / "tools/dev/offline_loops.py", *builtins)

    def __init__(self, root):
        super().__init__(root)
        self.head = "".join(path.read_text() for path in self.builtins) + "#line 1\n"

    def compile(self, target, text, groups):
        clang = [self.root / f"usr/lib/llvm-{CLANG[target.maker]}/bin/clang", *COMMON, "--target=" + target.triple,
                 "-march=" + (target.march or target.name), "-S"]
        with tempfile.TemporaryDirectory() as folder:
            source, code, result = (pathlib.Path(folder) / name for name in ("program.cl", "program.ll", "program.s"))
            source.write_text(self.head + text)
            self.run([*clang, *PROGRAM, "-o", code, source])
            code.write_text(with_library(code.read_text()))
            self.run([*clang, *LINKED, "-o", result, code])
            return kernels_of(result.read_text(), target.is_arm, kernel_names(text))


def with_library(code):
    """LLVM's code with the functions of cpu_builtins.clh to be inlined."""
    return re.sub(r"^attributes #\d+ = \{.* hot .*", lambda line: line[0].replace(" noinline ", " alwaysinline "), code, flags=re.M)


def kernel_names(text):
    return set(re.findall(r"\bkernel\b[^;{}]*?\bvoid\s+(\w+)\s*\(", re.sub(r"//.*", "", text)))

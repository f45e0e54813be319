"""The compilers for GPUs that are not there: how offline_compile.py calls them, and what it reads from what they say."""

import dataclasses
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from offline_loops import amd_loops, nvidia_loops


class Failed(Exception):
    """A compiler refused a program, or is missing; says what it printed."""


@dataclasses.dataclass(frozen=True)
class Chip:
    """What bounds how many groups share a compute unit (NVIDIA's SM, AMD's CU, from RDNA on its WGP of two).

    Each of the unit's four partitions has `registers` of a wave's width for its waves, given out in steps of `granule`.
    """

    width: int  # work-items of a wave
    waves: int  # per partition
    registers: int
    granule: int
    groups: int  # per unit
    local: int  # bytes per unit
    local_of_group: int = 0  # that every group takes besides
    counts_single_waves: bool = True  # whether groups of one wave are among `groups`

    def occupancy(self, registers, local, group):
        """Waves that a unit holds, of those that it could, in percent."""
        waves = -(-group // self.width)
        granules = max(1, -(-registers // self.granule))
        fit = 4 * min(self.waves, self.registers // (granules * self.granule)) // waves
        if waves > 1 or self.counts_single_waves:
            fit = min(fit, self.groups)
        if local + self.local_of_group:
            fit = min(fit, self.local // (local + self.local_of_group))
        return 100 * fit * waves // (4 * self.waves)


@dataclasses.dataclass(frozen=True)
class Target:
    name: str
    maker: str  # as tools/dev/offline_compilers.sh knows it
    device: str  # of the null driver: the closest to it in its table
    chip: Chip | None = None
    what: str = ""
    units: str = ""  # its matrix units, as kernels/matrix_units.clh calls them

    @property
    def sub_groups(self):
        """How they exchange values, as kernels/sub_groups.clh calls it."""
        return {"nvidia": "shfl", "amd": f"bpermute{self.chip and self.chip.width}", "intel": "intel"}.get(self.maker, "")


def _nvidia(waves, groups, kib, of_group):
    return Chip(32, waves, 512, 8, groups, kib << 10, of_group)


def _amd(width, waves, registers, granule, groups, kib):
    return Chip(width, waves, registers, granule, groups, kib << 10, counts_single_waves=False)


# CUDA's guide ("compute capabilities") and LLVM's AMDGPUBaseInfo.cpp have these numbers.
TARGETS = {
    target.name: target
    for target in (
        Target("sm_75", "nvidia", "rtx2080", _nvidia(8, 16, 64, 0), "Turing", "mma_sm75"),
        Target("sm_86", "nvidia", "rtx3090", _nvidia(12, 16, 100, 1024), "Ampere: RTX 3000", "mma_sm80"),
        Target("sm_90", "nvidia", "h100", _nvidia(16, 32, 228, 1024), "Hopper", "mma_sm80"),
        Target("gfx906", "amd", "mi50", _amd(64, 10, 256, 4, 16, 64), "Vega 20"),
        Target("gfx90a", "amd", "mi210", _amd(64, 8, 512, 8, 16, 64), "MI200", "mfma"),
        Target("gfx1030", "amd", "rx7900xtx", _amd(32, 16, 1024, 16, 32, 128), "RDNA 2"),
        Target("gfx1100", "amd", "rx7900xtx", _amd(32, 16, 1536, 24, 32, 128), "RDNA 3", "wmma"),
        Target("gen9", "intel", "uhd630", what="UHD 600"),
        Target("dg2", "intel", "a770", what="Arc", units="dpas8"),
        Target("spirv", "spirv", "rtx3090", what="drivers that take SPIR-V"),
    )
}


# Debian's build of Intel's compiler knows the functions of the extension, its headers do not.
MATRIX_FUNCTIONS = "".join(f"float8 __attribute__((overloadable, convergent)) intel_sub_group_{element}_{element}_matrix_mad_k16"
                           f"({words} a, int8 b, float8 sum);\n" for element in ("f16", "bf16") for words in ("int8", "short8"))


@dataclasses.dataclass
class Kernel:
    """What became of a kernel. Intel's registers are always 128: there the SIMD width is the measure."""

    registers: int = 0
    spills: int = 0  # bytes
    occupancy: int | None = None
    simd: int | None = None
    # Of its hottest loop, on NVIDIA's and AMD's.
    operations: int = 0
    multiply_adds: int = 0
    words: int = 0

    def take(self, loop):
        if loop:
            self.operations, self.multiply_adds, self.words = loop.operations, loop.multiply_adds, loop.words


class Compilers:
    """`root` is where tools/dev/offline_compilers.sh unpacked."""

    kernel = Kernel
    readers = tuple(pathlib.Path(__file__).with_name(name) for name in ("offline_targets.py", "offline_loops.py"))

    def __init__(self, root):
        self.root = pathlib.Path(root) / "root"
        self.libraries = self.root / "usr/lib/x86_64-linux-gnu"
        self.environment = {**os.environ, "LC_ALL": "C", "LD_LIBRARY_PATH": f"{self.libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}"}

    def run(self, command, **variables):
        try:
            done = subprocess.run(list(map(str, command)), env={**self.environment, **variables}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=300)
        except FileNotFoundError:
            raise Failed(f"{command[0]} is not there") from None
        except subprocess.TimeoutExpired:
            raise Failed(f"{pathlib.Path(command[0]).name} took more than 300 s") from None
        if done.returncode:
            raise Failed((done.stderr + done.stdout).strip() or f"{command[0]} ended with {done.returncode}")
        return done.stdout + done.stderr

    @functools.cached_property
    def ptxas(self):
        for candidate in (shutil.which("ptxas"), "/usr/local/cuda/bin/ptxas", self.root / "usr/bin/ptxas"):
            if candidate and os.access(candidate, os.X_OK):
                return candidate
        raise Failed("there is no ptxas, neither of CUDA's toolkit nor of PyPI's nvidia-cuda-nvcc")

    def version(self, maker):
        """Of the compilers that decide about registers."""
        packages = {"nvidia": ["clang-19"], "amd": ["clang-19", "rocm-device-libs"], "intel": ["libigc1"], "spirv": ["llvm-spirv-14"],
                    "cpu": ["clang-15"], "cpu-new": ["clang-19"]}[maker]
        versions = [f"{package} {self._unpacked(package)}" for package in packages]
        if maker == "nvidia":
            versions.append("ptxas " + re.search(r"V([\d.]+)", self.run([self.ptxas, "--version"]))[1])
        return ", ".join(versions)

    def _unpacked(self, package):
        version = (self.root.parent / "unpacked" / package).read_text().strip()
        return re.sub(r"^\d+:|[-+~].*", "", version)

    def compile(self, target, text, groups):
        """The program's kernels by name. `groups`: kernel -> (work-items of a group, bytes of local memory among its arguments)."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "program.cl"
            source.write_text(text)
            kernels = getattr(self, "_" + target.maker)(target, source, text)
        found = {}
        for name, (kernel, local) in kernels.items():
            if target.chip:
                group, of_arguments = groups.get(name, (256, 0))
                kernel.occupancy = target.chip.occupancy(kernel.registers, local + of_arguments, group)
            found[name] = kernel
        return found

    def _clang(self, *options):
        # Drivers inline every function, also those that C would not (CLBlast's `inline` ones), and accept the older rules.
        return [self.root / "usr/lib/llvm-19/bin/clang-19", "-x", "cl", "-w", "-fgnu89-inline", "-mllvm",
                "-inline-threshold=100000", "-O3", *options]

    def _nvidia(self, target, source, text):
        ptx = source.with_suffix(".ptx")
        library = self.root / "usr/lib/clc/nvptx64--nvidiacl.bc"
        self.run(self._clang(*options_of(text), "-Dcl_nv_pragma_unroll=1", "-target", "nvptx64-nvidia-nvcl", "-Xclang", "-target-cpu",
                             "-Xclang", target.name, "-Xclang", "-target-feature", "-Xclang", "+ptx83", "-Xclang",
                             "-mlink-builtin-bitcode", "-Xclang", library, "-S", "-o", ptx, source))
        if "reqd_work_group_size" in text:
            ptx.write_text(with_groups(ptx.read_text(), required_groups(self.run(self._clang(*options_of(text), "-E", "-P", source)))))
        cubin = source.with_suffix(".cubin")
        found = read_ptxas(self.run([self.ptxas, "-arch=" + target.name, "-v", ptx, "-o", cubin]))
        return with_loops(found, nvidia_loops(cubin.read_bytes()))

    def _amd(self, target, source, text):
        bitcode = self.libraries / "amdgcn/bitcode"
        # The libraries are older than RDNA 3: those of the chip before it, which call no other instructions.
        isa = target.name[3:] if (bitcode / f"oclc_isa_version_{target.name[3:]}.bc").exists() else "1036"
        wave = "on" if target.chip.width == 64 else "off"
        libraries = ["opencl", "ocml", "ockl", f"oclc_isa_version_{isa}", f"oclc_wavefrontsize64_{wave}", "oclc_daz_opt_off",
                     "oclc_finite_only_off", "oclc_unsafe_math_off", "oclc_correctly_rounded_sqrt_off", "oclc_abi_version_500"]
        linked = [word for name in libraries for word in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", bitcode / f"{name}.bc")]
        result = source.with_suffix(".s")
        self.run(self._clang(*options_of(text), "-mllvm", "-amdgpu-early-inline-all=true", "-mllvm", "-amdgpu-function-calls=false",
                             "-target", "amdgcn-amd-amdhsa", "-mcpu=" + target.name, "-nogpulib", *linked, "-S", "-o", result, source))
        assembly = result.read_text()
        return with_loops(read_amd(assembly), amd_loops(assembly))

    def _intel(self, target, source, text):
        dump = source.parent / "dump"
        if "#define MATRIX_UNIT_dpas" in text:
            source.write_text(MATRIX_FUNCTIONS + text)
        device = "skl" if target.name == "gen9" else target.name
        # Its own header does not compile as OpenCL C 1.1 for gen9, which CLBlast asks for.
        options = " ".join(options_of(text)).replace("-cl-std=CL1.1", "-cl-std=CL1.2")
        self.run([self.root / "usr/bin/ocloc", "compile", "-file", source, "-device", device, "-options", options, "-out_dir",
                  source.parent / "out"],
                 IGC_ShaderDumpEnable="1", IGC_DumpToCustomDir=str(dump), IGC_ShaderDumpPidDisable="1")
        found = {}
        for path in dump.glob("*_simd*.asm"):
            found.update(read_intel(path.read_text(errors="replace"), int(re.search(r"_simd(\d+)_", path.name)[1])))
        if not found:
            raise Failed("ocloc wrote no kernel")
        return found

    def _spirv(self, target, source, text):
        bitcode, module = source.with_suffix(".bc"), source.with_suffix(".spv")
        self.run([self.root / "usr/lib/llvm-14/bin/clang-14", "-x", "cl", "-w", "-fgnu89-inline", *options_of(text), "-O0", "-target",
                  "spir64", "-emit-llvm", "-c", "-o", bitcode, source])
        self.run([self.root / "usr/bin/llvm-spirv-14", "--spirv-max-version=1.1", bitcode, "-o", module])
        self.run([self.root / "usr/bin/spirv-val", "--target-env", "opencl2.1", module])
        return {}


def with_loops(found, loops):
    for name, (kernel, _) in found.items():
        kernel.take(loops.get(name))
    return found


def options_of(text):
    """What the program was built with: the first line of a dumped one."""
    first = text.split("\n", 1)[0]
    return first[3:].split() if first.startswith("// ") else ["-cl-std=CL1.2"]


def required_groups(preprocessed):
    """Kernel -> the work-group that the source requires, without macros: reqd_work_group_size(8 / 2 * (4), 1, 1)."""
    found = {}
    for part in preprocessed.split("reqd_work_group_size")[1:]:
        depth, sizes = 0, [""]
        for letter in part:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                break
            if depth == 1 and letter == ",":
                sizes.append("")
            else:
                sizes[-1] += letter
        sizes[0] = sizes[0].replace("(", "", 1)
        kernel = re.search(r"\bvoid\s+(\w+)\s*\(", part)
        if kernel and all(re.fullmatch(r"[\d\s()+*/-]+", size) for size in sizes):
            found[kernel[1]] = tuple(int(eval(size.replace("/", "//"))) for size in sizes)  # digits and operators only
    return found


def with_groups(ptx, required):
    """PTX with the work-groups that the source requires, which clang does not hand on and NVIDIA's own compiler does."""
    for kernel, sizes in required.items():
        bound = ".reqntid " + ", ".join(map(str, sizes))
        ptx = re.sub(r"(\.entry " + kernel + r"\(.*?\n\))\n", rf"\1\n{bound}\n", ptx, count=1, flags=re.S)
    return ptx


def read_ptxas(log):
    """`ptxas -v`: kernel -> (what became of it, bytes of local memory)."""
    found = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        name = re.match(r"'(\S+?)'", part)[1]
        stores, loads = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part).groups()
        local = re.search(r"(\d+) bytes smem", part)
        found[name] = (Kernel(int(re.search(r"Used (\d+) registers", part)[1]), int(stores) + int(loads)), int(local[1]) if local else 0)
    return found


def read_amd(assembly):
    """LLVM's metadata behind AMD's assembly."""
    found = {}
    for part in re.split(r"^  - \.(?=a)", assembly[assembly.rindex("amdhsa.kernels:"):], flags=re.M)[1:]:
        # Arguments have names, too: the kernel's is the one at the outermost level.
        number = lambda key: int(re.search(rf"^    \.{key}:\s+(\d+)", part, re.M)[1])
        name = re.search(r"^    \.name:\s+(\S+)", part, re.M)[1]
        # A lane's register is 4 bytes; scalar registers spill into lanes of vector registers.
        found[name] = (Kernel(number("vgpr_count"), 4 * number("vgpr_spill_count")), number("group_segment_fixed_size"))
    return found


def read_intel(assembly, simd):
    """A kernel's assembly as Intel's compiler dumps it."""
    name = re.match(r"//\.kernel (\S+)", assembly)
    if not name:
        return {}
    spilled = re.search(r"^//\.spill size (\d+)", assembly, re.M)
    return {name[1]: (Kernel(spills=int(spilled[1]) if spilled else 0, simd=simd), 0)}

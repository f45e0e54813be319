"""What the innermost loops of compiled kernels do: multiply-adds, other operations, words of local memory; and what they must reach."""

import dataclasses
import re
import struct


@dataclasses.dataclass
class Loop:
    """Of a work-item, each time round. An instruction of two operations is two; AMD's scalar instructions are none."""

    operations: int = 0
    multiply_adds: int = 0  # in f32
    words: int = 0  # read of local memory

    def add(self, other):
        self.operations += other.operations
        self.multiply_adds += other.multiply_adds
        self.words += other.words


# What the loops of products and convolutions must reach in their largest tile, whose groups are of 256 items: multiply-adds among all
# operations, and for each word of local memory.
SHARE, PER_WORD = 0.75, 4
# Registers by which a second group fits on an SM; RDNA 3 gives out 24 at a time, so that more than 120 and up to 144 leave as many waves.
REGISTERS = {"sm_86": 128, "gfx1100": 144}


# Of tiles of products by NVIDIA's matrix units. A wave of 64 x 64 sums has 128 in each item's registers, and groups half as many items.
UNITS_TARGET, UNITS_REGISTERS, UNITS_REGISTERS_OF_64X64 = "sm_86", 168, 255


def units_below_bars(target, kind, kernel):
    """The same of a product's tile by matrix units, of whose loop nothing is counted."""
    if target != UNITS_TARGET or not kind.startswith("matmul_matrix_units_gpu:"):
        return []
    where, wrong = f"{target}: {kind}", []
    most = UNITS_REGISTERS_OF_64X64 if kind.split(":")[2] == "64x64" else UNITS_REGISTERS
    if kernel.registers > most:
        wrong.append(f"{where}: {kernel.registers} registers, {most} at most are wanted")
    if kernel.spills:
        wrong.append(f"{where}: spills {kernel.spills} bytes")
    return wrong


def below_bars(target, kind, kernel):
    """A line for each bar that a compiled kernel misses; `kernel` is an offline_targets.Kernel."""
    where, wrong = f"{target}: {kind}", []
    if kernel.multiply_adds < SHARE * kernel.operations or kernel.operations == 0:
        wrong.append(f"{where}: {kernel.multiply_adds} multiply-adds among {kernel.operations} operations of its loop, {SHARE:.0%} are wanted")
    if kernel.multiply_adds < PER_WORD * kernel.words:
        wrong.append(f"{where}: {kernel.multiply_adds} multiply-adds for {kernel.words} words of local memory, {PER_WORD} for each are wanted")
    if kernel.registers > REGISTERS[target]:
        wrong.append(f"{where}: {kernel.registers} registers, {REGISTERS[target]} at most are wanted")
    if kernel.spills:
        wrong.append(f"{where}: spills {kernel.spills} bytes")
    return wrong


def hottest(operations, branches):
    """The innermost loop with the most multiply-adds, else operations. `branches`: from an index in `operations` back to an earlier one."""
    spans = {(to, at) for at, to in branches if to <= at}
    inner = [span for span in spans if not any(other != span and span[0] <= other[0] and other[1] <= span[1] for other in spans)]
    loops = []
    for begin, end in inner:
        loop = Loop()
        for operation in operations[begin:end + 1]:
            loop.add(operation)
        loops.append(loop)
    return max(loops, key=lambda loop: (loop.multiply_adds, loop.operations), default=None)


# LLVM's assembly.


@dataclasses.dataclass
class Block:
    label: str = ""
    note: str = ""  # comments at its head, which tell the loop that it is in
    instructions: list = dataclasses.field(default_factory=list)  # texts and their comments


def functions(assembly, comment):
    """Name -> blocks of each function."""
    found = {}
    for name, body in re.findall(r"^(\w+):[^\n]*\n(.*?)^\.Lfunc_end\d+:", assembly, re.M | re.S):
        blocks = found[name] = [Block()]
        for line in body.splitlines():
            head = re.match(rf"(?:\.L(\w+)|{comment} %bb\.\d+):(.*)", line)
            text, _, note = (head[2] if head else line).partition(comment)
            if head:
                blocks.append(Block(head[1] or "", note))
            elif text.strip() and not text.strip().startswith("."):
                blocks[-1].instructions.append((text.strip(), note))
            elif blocks[-1].instructions and not text.strip():
                # What does not fit on the line before.
                blocks[-1].instructions[-1] = (blocks[-1].instructions[-1][0], blocks[-1].instructions[-1][1] + note)
            else:
                blocks[-1].note += note
    return found


# AMD.

AMD_LOCAL = re.compile(r"ds_(?:load|read)(2)?(?:_2addr)?(?:st64|_stride64)?_[bui](\d+)")


def amd_operation(line):
    # Scalar ones are begun beside another wave's vector operations, or are hints.
    if line.startswith("s_"):
        return Loop()
    halves = line.split("::")  # of RDNA 3's instructions for two
    adds = sum(bool(re.match(r"\s*v_(dual_)?(fma|fmac|fmaak|fmamk|mac|mad|pk_fma)_f32", half)) * (2 if "v_pk_" in half else 1) for half in halves)
    local = AMD_LOCAL.match(line)
    words = int(local[2]) // 32 * (2 if local[1] or "2addr" in line.split()[0] else 1) if local else 0
    return Loop(len(halves) + ("v_pk_fma" in line), adds, words)


def amd_loops(assembly):
    """Kernel -> its hottest loop, of all functions in the assembly."""
    found = {}
    for name, blocks in functions(assembly, ";").items():
        operations, labels, jumps = [], {}, []
        for block in blocks:
            labels[block.label] = len(operations)
            for text, _ in block.instructions:
                jump = re.match(r"s_c?branch\w*\s+\.L(\w+)", text)
                if jump:
                    jumps.append((len(operations), jump[1]))
                operations.append(amd_operation(text))
        found[name] = hottest(operations, [(at, labels[to]) for at, to in jumps if to in labels])
    return found


# NVIDIA: machine code of sm_70 to sm_89 and from sm_90 on. 16 bytes are an instruction, whose lowest 9 bits say what it does (found by
# assembling PTX one instruction at a time; NVIDIA's own disassembler is in no package that this needs otherwise).

FFMA, LDS, NOP = 0x023, 0x184, 0x118
WORDS = {4: 1, 5: 2, 6: 4}  # by the size in bits 73 to 75


def nvidia_loops(cubin):
    """Kernel -> its hottest loop, of a cubin's bytes."""
    offset, = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQ", cubin, offset + i * size) for i in range(count)]
    flags, = struct.unpack_from("<I", cubin, 48)
    # The architecture is in the lowest byte, from CUDA 13 on in the one above.
    arch = next(value for value in (flags & 0xff, flags >> 8 & 0xff) if 50 <= value < 130)
    found = {}
    for head in heads:
        start = heads[names][4] + head[0]
        name = cubin[start:cubin.index(b"\0", start)].decode()
        if name.startswith(".text."):
            found[name[6:]] = nvidia_loop(cubin[head[4]:head[4] + head[5]], arch)
    return found


def nvidia_loop(code, arch):
    operations, branches = [], []
    for at in range(0, len(code) - 15, 16):
        word = int.from_bytes(code[at:at + 16], "little")
        kind = word & 0x1ff
        operations.append(Loop(kind != NOP, kind == FFMA, WORDS.get(word >> 73 & 7, 1) if kind == LDS else 0))
        if word & 0xfff == 0x947:
            if arch >= 90:
                far = word >> 34 & (1 << 48) - 1
                target = at + 16 + 4 * ((far - ((far >> 47) << 48) << 8) | word >> 16 & 0xff)
            else:
                far = word >> 32 & 0xffffffff
                target = at + 16 + far - ((far >> 31) << 32)
            # A kernel ends with a branch to itself.
            if 0 <= target < at:
                branches.append((at // 16, target // 16))
    return hottest(operations, branches)

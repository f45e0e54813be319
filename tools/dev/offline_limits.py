"""The recorded limits of offline_compile.py: a text table that people read, too."""

import dataclasses
import re

MORE_REGISTERS = 8  # than recorded: what another version of a compiler may take

HEAD = """\
# What tools/dev/offline_compile.py found, and fails on more of; bench/notebook/2026-11-devices.md explains it, and
#   tools/dev/offline_compile.py --operations --write-limits
# writes it anew. A step of a network: launches/kB moved, by the null driver's device. The worst kernel of a kind among the networks'
# programs: registers/occupancy in percent, on Intel's GPUs the SIMD width; a third number: bytes that it spills. Of other programs (the
# operation tests') only the kinds that spill, and how many bytes, for the targets that have a column.
"""


@dataclasses.dataclass(frozen=True)
class Step:
    """What a step of a network launches, and the bytes of all that it reads, writes and copies, as CLNET_TRACE counts them."""

    launches: int
    bytes: int

    def text(self):
        return f"{self.launches}/{-(-self.bytes // 1000)}"

    @staticmethod
    def parse(text):
        launches, kilobytes = cell_numbers(r"(\d+)/(\d+)", text)
        return Step(launches, 1000 * kilobytes)


@dataclasses.dataclass(frozen=True)
class KernelLimit:
    """The worst of a kind of kernels."""

    registers: int
    occupancy: int | None = None
    simd: int | None = None
    spills: int = 0

    @staticmethod
    def of(kernel):
        return KernelLimit(kernel.registers, kernel.occupancy, kernel.simd, kernel.spills)

    def worse(self, other):
        if other is None:
            return self
        least = lambda a, b: b if a is None else a if b is None else min(a, b)
        return KernelLimit(max(self.registers, other.registers), least(self.occupancy, other.occupancy), least(self.simd, other.simd),
                           max(self.spills, other.spills))

    def text(self):
        main = f"SIMD{self.simd}" if self.simd is not None else f"{self.registers}/{self.occupancy}"
        return main + (f"/{self.spills}" if self.spills else "")

    @staticmethod
    def parse(text):
        if text.startswith("SIMD"):
            simd, spills = cell_numbers(r"SIMD(\d+)(?:/(\d+))?", text)
            return KernelLimit(0, None, simd, spills)
        registers, occupancy, spills = cell_numbers(r"(\d+)/(\d+)(?:/(\d+))?", text)
        return KernelLimit(registers, occupancy, None, spills)


@dataclasses.dataclass
class Limits:
    steps: dict = dataclasses.field(default_factory=dict)  # (network, device) -> Step
    kernels: dict = dataclasses.field(default_factory=dict)  # (kind, target) -> KernelLimit, of the networks' programs
    others: dict = dataclasses.field(default_factory=dict)  # the same of other programs; only their spills are recorded
    others_targets: list = dataclasses.field(default_factory=list)  # for which they are
    versions: dict = dataclasses.field(default_factory=dict)  # target -> its compilers

    @staticmethod
    def read(path, may_lack=False):
        return read_limits(path, Limits.parse, may_lack)

    @staticmethod
    def parse(text):
        tables, columns, versions = read_tables(text, {"network": Step.parse, "kernel": KernelLimit.parse,
                                                       "spilling": lambda cell: KernelLimit(0, spills=cell_numbers(r"(\d+)", cell)[0])})
        return Limits(tables["network"], tables["kernel"], tables["spilling"], columns["spilling"], versions)

    def text(self):
        spilling = {key: str(kernel.spills) for key, kernel in self.others.items() if kernel.spills}
        tables = [table_of("network", texts(self.steps)), table_of("kernel", texts(self.kernels)), table_of("spilling", spilling, self.others_targets)]
        return limits_text(HEAD, tables, self.versions)

    def table(self):
        """All that was found, for people: also of other programs."""
        tables = [table_of("network", texts(self.steps)), table_of("kernel", texts(self.kernels)), table_of("others", texts(self.others))]
        return "\n".join(table for table in tables if table)

    def replace(self, found):
        """Takes over all columns that were found; the others stay, and all stay where they are."""
        for mine, new in ((self.steps, found.steps), (self.kernels, found.kernels), (self.others, found.others)):
            take_over(mine, new, found.others_targets if mine is self.others else [])
        self.others_targets += [target for target in found.others_targets if target not in self.others_targets]
        self.versions.update(found.versions)


def cell_numbers(pattern, text):
    """What a cell's parts are, by the groups of its pattern; 0 for one that is not there."""
    match = re.fullmatch(pattern, text)
    if not match:
        raise ValueError(f"{text!r} is no limit")
    return [float(part) if "." in part else int(part) for part in match.groups(default="0")]


def read_limits(path, parse, may_lack):
    """What a file records; nothing where it may lack and does."""
    if may_lack and not path.exists():
        return parse("")
    try:
        return parse(path.read_text())
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise SystemExit(f"{path}: {error}") from None


def read_tables(text, readers):
    """The tables of a file by the first word of their heads, (row, column) -> what a reader makes of the cell; their columns; compilers of targets.
    A ValueError names the line that is none of these."""
    tables, columns, versions, into = {head: {} for head in readers}, {head: [] for head in readers}, {}, ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0] == "#":
            continue
        if words[0] == "compilers" and len(words) > 2:
            versions[words[1]] = " ".join(words[2:])
        elif words[0] in tables:
            into = words[0]
            columns[into] = words[1:]
        elif not into or len(words) != 1 + len(columns[into]):
            raise ValueError(f"line {number}: {words[0]} has {len(words) - 1} cells, and the head above it {len(columns.get(into, []))}")
        else:
            try:
                tables[into].update({(words[0], column): readers[into](cell) for column, cell in zip(columns[into], words[1:]) if cell != "-"})
            except ValueError as error:
                raise ValueError(f"line {number}: {words[0]}: {error}") from None
    return tables, columns, versions


def limits_text(head, tables, versions):
    compilers = "".join(f"compilers {target:8} {version}\n" for target, version in versions.items())
    return head + "".join("\n" + table for table in [*tables, compilers] if table)


def take_over(mine, new, also=()):
    """New cells for old, column by column, of those that are new or `also` named; columns stay in their order."""
    columns = {*(column for _, column in new), *also}
    order = list(dict.fromkeys(column for _, column in [*mine, *new]))
    kept = {key: cell for key, cell in mine.items() if key[1] not in columns}
    mine.clear()
    mine.update(sorted({**kept, **new}.items(), key=lambda item: order.index(item[0][1])))


def other_versions(found, recorded):
    """A line for each target whose compilers are not those of the records."""
    return [f"{target}: compiled by {version}; recorded with {recorded[target]}" for target, version in found.items()
            if recorded.get(target, version) != version]


def texts(cells):
    return {key: cell.text() for key, cell in cells.items()}


def table_of(head, cells, columns=()):
    columns = list(columns) or list(dict.fromkeys(column for _, column in cells))
    if not columns:
        return ""
    rows = [[head, *columns]]
    for name in sorted({name for name, _ in cells}):
        rows.append([name, *(cells.get((name, column), "-") for column in columns)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "".join(" ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() + "\n" for row in rows)


def problems(found, recorded):
    """A line for everything that is worse than recorded."""
    lines = []
    for (network, device), step in found.steps.items():
        limit = recorded.steps.get((network, device))
        where = f"{network} on {device}"
        if limit is None:
            lines.append(f"{where}: is not recorded (--write-limits)")
            continue
        if step.launches > limit.launches:
            lines.append(f"{where}: {step.launches} launches in a step, {limit.launches} are recorded")
        if step.bytes > limit.bytes:
            lines.append(f"{where}: a step moves {-(-step.bytes // 1000)} kB, {limit.bytes // 1000} are recorded")
    for (kernel, target), result in found.kernels.items():
        limit = recorded.kernels.get((kernel, target))
        where = f"{target}: {kernel}"
        lines += _spills(where, result, limit)
        if limit is None:
            lines.append(f"{where}: is not recorded (--write-limits)")
            continue
        if result.registers > limit.registers + MORE_REGISTERS:
            lines.append(f"{where}: {result.registers} registers, {limit.registers} are recorded")
        # Another version's register more or less may cross a step of occupancy.
        alike = found.versions.get(target) == recorded.versions.get(target)
        if alike and result.occupancy is not None and limit.occupancy is not None and result.occupancy < limit.occupancy:
            lines.append(f"{where}: an occupancy of {result.occupancy} %, {limit.occupancy} % is recorded")
        if result.simd is not None and limit.simd is not None and result.simd < limit.simd:
            lines.append(f"{where}: SIMD{result.simd}, SIMD{limit.simd} is recorded")
    for (kernel, target), result in found.others.items():
        if target in recorded.others_targets:
            lines += _spills(f"{target}: {kernel} of other programs", result, recorded.others.get((kernel, target)))
    return lines + (other_versions(found.versions, recorded.versions) if lines else [])


def _spills(where, result, limit):
    known = limit.spills if limit else 0
    return [f"{where}: spills {result.spills} bytes, {known} are recorded"] if result.spills > known else []

"""What of the text of kernels says how fast they are: hashes of kernel files that renaming, moving and commenting leave alone.

A kernel's text is its file (.cl) and, of the headers (.clh) that the file includes, the definitions that it comes to by name, directly
or through others. Comments and spaces do not count, and names only by their order: each that is not OpenCL's own becomes its number.
So a renamed variable, function, macro or file gives the same hash; a changed loop, number, type, condition or call of OpenCL another.
"""
import dataclasses
import functools
import hashlib
import pathlib
import re

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|##|\S')
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.S)
NAME = re.compile(r"[A-Za-z_]\w*")
DIRECTIVE = re.compile(r"\s*#\s*(\w+)(.*)", re.S)
# What C and OpenCL C name: these stay as they are. Of their functions only where they are called, as some are called step or length.
OWN = re.compile(
    r"__\w+|(?:u?(?:char|short|int|long)|float|double|half|bool)\d*|(?:vload|vstore)(?:\d+|_half\w*)?|"
    r"(?:as|convert|atomic|atom|native|half|get|cl|sub_group|intel)_\w+|void|size_t|ptrdiff_t|if|else|for|while|do|switch|case|default|"
    r"break|continue|return|goto|sizeof|struct|union|enum|typedef|const|volatile|restrict|static|inline|extern|signed|unsigned|"
    r"kernel|global|local|constant|private|define|undef|ifdef|ifndef|elif|endif|defined|error|pragma|"
    r"CLK_\w+|INFINITY|NAN|MAXFLOAT|HUGE_VALF|M_\w+|FLT_\w+|(?:U?(?:CHAR|SHRT|INT|LONG))_M(?:AX|IN)")
OWN_FUNCTION = re.compile(
    r"barrier|(?:read_|write_)?mem_fence|prefetch|async_\w+|wait_group_events|printf|f?abs|abs_diff|add_sat|sub_sat|r?hadd|clamp|clz|popcount|"
    r"mad(?:24|_hi|_sat)?|mul(?:24|_hi)|f?max|f?min|rotate|upsample|fma|fmod|fract|frexp|ldexp|a?(?:cos|sin|tan)(?:h|pi)?|atan2(?:pi)?|sincos|"
    r"cbrt|ceil|floor|rint|round|trunc|copysign|erfc?|exp(?:2|10|m1)?|fdim|hypot|ilogb|l?gamma|log(?:2|10|1p|b)?|modf|nan|nextafter|"
    r"pow[nr]?|remainder|remquo|rootn|r?sqrt|degrees|radians|mix|sign|step|smoothstep|cross|dot|distance|length|normalize|fast_\w+|"
    r"is(?:equal|notequal|greater\w*|less\w*|finite|inf|nan|normal|ordered|unordered)|signbit|any|all|bitselect|select|shuffle2?")
# Parts of vectors, behind a dot.
OWN_PART = re.compile(r"[sS][0-9a-fA-F]+|[xyzw]+|lo|hi|even|odd")


@dataclasses.dataclass
class Chunk:
    """A definition or another piece at the top level of a file, with the conditions that it stands under."""
    names: tuple  # what it defines
    tokens: list
    parameters: tuple = ()  # of a macro


def without_comments(text):
    return COMMENT.sub(lambda found: found[1] or " ", text)


def lines_of(text):
    """Whole lines of the text, without comments: those that end in a backslash go on."""
    return without_comments(text).replace("\\\n", " ").split("\n")


def includes_of(text):
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', without_comments(text), re.M)


def define_of(rest):
    """The chunk of what follows #define."""
    found = re.match(r"\s*(\w+)(\(([^)]*)\))?(.*)", rest, re.S)
    name, arguments, parameters, body = found.groups()
    parameters = tuple(re.findall(r"\w+", parameters or ""))
    # F(x) takes arguments, F (x) does not.
    head = ["#", "define", name] + ([f"({len(parameters)}", *parameters, ")"] if arguments else [])
    return Chunk((name,), head + TOKEN.findall(body), parameters)


def declared(tokens):
    """The names that a declaration or a function at the top level declares: what stands before its parameters, its array or its end."""
    if tokens[0] == "typedef":
        words = re.sub(r"\{.*\}|__attribute__ .*", "", " ".join(tokens)).split()
        return tuple(word for word in words[-2:] if NAME.fullmatch(word) and not OWN.fullmatch(word))[-1:]
    depth, last, names = 0, "", []
    for token in tokens:
        if token in "([" and depth == 0 and NAME.fullmatch(last) and last != "__attribute__":
            names.append(last)
        if token in "{=" and depth == 0:
            break
        depth += (token in "([") - (token in ")]")
        if depth == 0 and token in ",;" and NAME.fullmatch(last):
            names.append(last)
        last = token
    known = [name for name in names if not OWN.fullmatch(name)]
    # MACRO(name, ...) may define whatever it is given.
    if known and known[0] == tokens[0]:
        known += [token for token in tokens[1:tokens.index(")")] if NAME.fullmatch(token) and not OWN.fullmatch(token)]
    return tuple(known)


def is_function(tokens):
    """Whether a piece that just closed a bracket is complete: a structure or a table goes on to its semicolon."""
    head = tokens[:tokens.index("{")]
    return "(" in head and "=" not in head


def chunks_of(text):
    """The text's pieces in order. Guards of headers and #include lines are none."""
    chunks, conditions, depths, piece, depth = [], [], [], [], 0

    def end():
        nonlocal piece
        if piece:
            chunks.append(Chunk(declared(piece), [t for condition in conditions for t in condition] + piece))
        piece = []
    for line in lines_of(text):
        directive = DIRECTIVE.match(line)
        if not directive:
            for token in TOKEN.findall(line):
                piece.append(token)
                depth += (token in ("{", "(", "[")) - (token in ("}", ")", "]"))
                if depth == 0 and (token == ";" or token == "}" and is_function(piece)):
                    end()
            continue
        word, rest = directive.groups()
        tokens = ["#", word, *TOKEN.findall(rest)]
        guard = word == "ifndef" and rest.strip().endswith("_CLH")
        if word in ("if", "ifdef", "ifndef"):
            conditions.append([] if guard else tokens)
            depths.append(depth)
        elif word in ("elif", "else") and conditions:
            conditions[-1] = conditions[-1] + tokens
            depth = depths[-1]
        elif word == "endif" and conditions:
            conditions.pop()
            depths.pop()
        if word == "include" or guard or (word == "define" and rest.strip().endswith("_CLH")):
            continue
        if depth == 0 and piece[1:2] == ["("] and piece[-1] == ")":  # a macro's call that needs no semicolon
            end()
        if piece:  # within a function
            piece += tokens
        elif word in ("define", "undef"):
            chunk = define_of(rest) if word == "define" else Chunk((rest.strip(),), tokens)
            chunk.tokens = [t for condition in conditions for t in condition] + chunk.tokens
            chunks.append(chunk)
        elif word not in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
            chunks.append(Chunk((), [t for condition in conditions for t in condition] + tokens))
    end()
    return chunks


def is_own(tokens, i):
    token = tokens[i]
    return bool(OWN.fullmatch(token) or OWN_FUNCTION.fullmatch(token) and tokens[i + 1:i + 2] == ["("]
                or OWN_PART.fullmatch(token) and tokens[i - 1:i] == ["."])


def normalised(chunks):
    """The chunks' text with each name that is not OpenCL's own as a number, in the order of appearance: what chunks define and what is
    in capitals, as the host's defines are, in all of them, and others, as variables are, in each chunk anew."""
    defined = {name for chunk in chunks for name in chunk.names}
    numbers, text = {}, []
    for chunk in chunks:
        own_numbers = {}
        for i, token in enumerate(chunk.tokens):
            if NAME.fullmatch(token) and not is_own(chunk.tokens, i):
                if token in defined or token.isupper():
                    token = f"g{numbers.setdefault(token, len(numbers))}"
                else:
                    token = f"n{own_numbers.setdefault(token, len(own_numbers))}"
            text.append(token)
        text.append("\n")
    return " ".join(text)


def mentioned(chunk):
    """What a chunk names, in order: names, and beginnings and ends of names that macros put together, as ("begins", part)."""
    wanted = []
    for i, token in enumerate(chunk.tokens):
        if not NAME.fullmatch(token) or token in chunk.parameters:
            continue
        before, after = chunk.tokens[i - 1] if i else "", chunk.tokens[i + 1] if i + 1 < len(chunk.tokens) else ""
        if after == "##" or token.endswith("_"):
            wanted.append(("begins", token))
        if before == "##":
            wanted.append(("ends", token))
        wanted.append(("is", token))
    return wanted


def fits(name, how, part):
    return name == part if how == "is" else name != part and (name.startswith(part) if how == "begins" else name.endswith(part))


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Kernels:
    """The kernel files of a tree."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        # Names are unique whatever the folder, as the build wants them.
        self.texts = {path.name: path.read_text() for path in sorted(self.folder.rglob("*.cl*")) if path.suffix in (".cl", ".clh")}
        # builtins.clh only declares what is OpenCL's own.
        self.shared = [path.name for path in sorted(self.folder.glob("*.clh")) if path.name != "builtins.clh"]

    @functools.cache
    def chunks(self, name):
        return chunks_of(self.texts[name])

    def included(self, name):
        """The headers that a file includes, directly or through others."""
        found, open_ = [], includes_of(self.texts[name])
        while open_:
            header = open_.pop(0)
            if header not in found and header in self.texts:
                found.append(header)
                open_ += includes_of(self.texts[header])
        return found

    @functools.cache
    def definitions(self):
        """All names that headers for every family define."""
        return {name for header in self.shared for chunk in self.chunks(header) for name in chunk.names}

    @functools.cache
    def header_lines(self):
        return {line for name, text in self.texts.items() if name.endswith(".clh") for line in text.split("\n")}

    @functools.cache
    def hash_of(self, part):
        """Of a kernel file ("matmul_cpu.cl") or a definition in the headers ("clnet_exp"); None where there is none."""
        if part.endswith(".cl"):
            if part not in self.texts:
                return None
            begin = self.chunks(part)
            headers = [chunk for header in self.included(part) for chunk in self.chunks(header)]
        else:
            headers = [chunk for header in self.shared for chunk in self.chunks(header)]
            begin = [chunk for chunk in headers if part in chunk.names]
            if not begin:
                return None
        return digest(normalised(closure(begin, headers)))

    @functools.cache
    def hashes(self):
        """Of all parts."""
        return {self.hash_of(part) for part in self.definitions() | {name for name in self.texts if name.endswith(".cl")}}

    def has(self, part, hash):
        """Whether a part is as it was, perhaps by another name."""
        return self.hash_of(part) == hash or hash in self.hashes()


def closure(begin, headers):
    """The chunks to begin with, and those in headers that they come to, nearest first: neither the names nor the order of the headers and
    of what is in them counts."""
    by_name = {}
    for chunk in headers:
        for name in chunk.names:
            by_name.setdefault(name, []).append(chunk)
    taken, seen = {}, set()
    waiting = list(begin) + [chunk for chunk in headers if not chunk.names and chunk not in begin]
    while waiting:
        chunk = waiting.pop(0)
        if id(chunk) in taken:
            continue
        taken[id(chunk)] = chunk
        for how, part in mentioned(chunk):
            if (how, part) in seen:
                continue
            seen.add((how, part))
            names = [part] if how == "is" else [name for name in by_name if fits(name, how, part)]
            found = {id(other): other for name in names for other in by_name.get(name, ()) if id(other) not in taken}
            waiting += sorted(found.values(), key=lambda other: normalised([other]))
    return list(taken.values())

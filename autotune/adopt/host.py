"""What a host program says of a kernel: how it is launched, and how much room its arrays have.

It is read from the text, since a host program rarely parses without its headers.

C++ arithmetic is read as Python's, with what the host's variables stand for put in, until only the kernel's parameters,
numbers and names of open block sizes are left: an expression of family.yaml.
"""

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from autotune.adopt.source import CudaSource, identifiers
from autotune.declaration import Expression as Computed
from autotune.errors import AutotuneError

_DEEPEST = 12
_LONGEST = 300
_SIZES = {
    1: "char bool int8_t uint8_t uchar", 2: "short int16_t uint16_t half __half __nv_bfloat16 nv_bfloat16",
    4: "int unsigned uint float int32_t uint32_t uchar4", 12: "float3 int3", 16: "float4 int4 uint4 double2",
    8: "double long size_t int64_t uint64_t float2 int2 uint2", 32: "double4",
}  # fmt: skip
_TYPE = (
    r"(?:const\s+)?(?:unsigned\s+|signed\s+|long\s+)*"
    r"(?:int|char|short|long|float|double|unsigned|size_t|u?int\d+_t|uint)"
)
_CAST = re.compile(rf"\(\s*{_TYPE}\s*\)|\b(?:static_cast\s*<\s*{_TYPE}\s*>|{_TYPE})(?=\s*\()|\bstd\s*::\s*")
_SIZEOF = re.compile(r"\bsizeof\s*\(?\s*((?:struct\s+|const\s+|unsigned\s+|long\s+)*\w+)\s*\)?")
_SUFFIX = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?)(?:[uUlL]+|[fF])\b")
_TERNARY = re.compile(r"^\s*(?P<test>[^?:]+)\?(?P<then>[^?:]+):(?P<other>[^?:]+)$")
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|\\\n", re.DOTALL)
_ROUNDED_UP = re.compile(r"^ceilf?$|ceil_?div|div_?(?:round_?)?up|div_?ceil|cdiv|ceiling_div", re.IGNORECASE)
_ALLOCATED = re.compile(
    r"\b(?:cuda|hip)Malloc(?:Managed|Async)?\s*(?:<[^>]*>\s*)?\(\s*(?:\([^()]*\)\s*)?&\s*(\w+)\s*,"
)


class _Unknown(Exception):
    """A host's variable that nothing explains."""


@dataclass(frozen=True)
class HostLaunch:
    """``grid`` and ``block`` as expressions of family.yaml, where each of ``open`` is a block size that the program
    does not fix."""

    where: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared_bytes: str = ""
    open: tuple[str, ...] = ()
    is_asked: bool = False


@dataclass
class HostProgram:
    """``parameters`` are the kernel's, in their order; ``numbers`` those of them that are whole numbers."""

    source: CudaSource
    kernel: str
    parameters: Sequence[str]
    numbers: frozenset[str]
    records: Mapping[str, int] = field(default_factory=dict)
    not_understood: str = ""

    @cached_property
    def texts(self) -> dict[str, str]:
        """The files that were read, without comments and literals, by name."""
        return {
            path.name: _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), content.decode("utf-8", "replace"))
            for path, content in self.source.files.items()
        }  # fmt: skip

    @cached_property
    def all(self) -> str:
        return "\n".join(self.texts.values())

    # -- the launch -------------------------------------------------------------------------------------

    @cached_property
    def calls(self) -> "list[HostCall]":
        """Every ``kernel<values><<<grid, block>>>(arguments)``."""
        calls = []
        begin = rf"\b{re.escape(self.kernel)}\s*(?:<(?P<values>[^<>;(){{}}]*)>\s*)?<<<"
        for name, text in self.texts.items():
            for match in re.finditer(begin, text):
                end = text.find(">>>", match.end())
                opened = text.find("(", end)
                if end < 0 or opened < 0 or text[end + 3 : opened].strip():
                    continue
                where = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
                values = [v.strip() for v in (match["values"] or "").split(",") if v.strip()]
                arguments, configuration = split(_get_inside(text, opened)), split(text[match.end() : end])
                scope = _scope(text, match.start())
                calls.append(HostCall(self, where, scope, arguments, configuration, values))
        return calls

    @cached_property
    def launch(self) -> HostLaunch | None:
        """The first launch that can be said in terms of the kernel's parameters."""
        for call in self.calls:
            try:
                return call.launch()
            except _Unknown as problem:
                why = f"{problem} is none of the kernel's numbers" if str(problem).isidentifier() else problem
                told = f"the launch in {call.where} is not understood ({why})"
                self.not_understood = self.not_understood or told
        return None

    def read_command_line(self, grid: str, block: str) -> HostLaunch:
        """What the command line says. Raises AutotuneError for what is no expression."""
        reader = HostCall(self, "the command line", "", list(self.parameters))
        said = []
        for option, text in (("--grid", grid), ("--block", block)):
            try:
                said.append(tuple(reader.read_text(item) for item in split(text)))
            except _Unknown as problem:
                known = ", ".join(sorted(self.numbers)) or "none"
                raise AutotuneError(
                    f"{option} {text!r}: {problem}; the kernel's numbers are {known}"
                ) from None
        return HostLaunch("the command line", said[0], said[1], is_asked=True)

    def relations(self) -> Iterator[tuple[str, str]]:
        """Numbers of the kernel that the program makes of others, or fixes, each with what it is."""
        for call in self.calls[:1]:
            given = list(zip(self.parameters, call.arguments, strict=False))
            for parameter, text in given:
                texts = {item.strip() for item in call.find_values(text)} if text.isidentifier() else {text}
                others = replace(call, arguments=[a if p != parameter else "" for p, a in given])
                if parameter in self.numbers and len(texts) == 1 and (known := others.try_read(texts.pop())):
                    yield parameter, ast.unparse(known)

    def elements(self, array: str, size: int) -> list[str] | None:
        """The factors of how many elements of ``size`` bytes the host allocates for an array; None where it is not
        known."""
        place = self.parameters.index(array)
        for call in self.calls:
            named = re.sub(r"^\(.*?\)\s*", "", (call.arguments[place:] or [""])[0])
            for text in self.texts.values():
                for match in (found for found in _ALLOCATED.finditer(text) if found[1] == named):
                    room = split(text[match.end() : find_close(text, text.index("(", match.start()))])[0]
                    here = HostCall(self, call.where, _scope(text, match.start()), call.arguments)
                    if (known := here.try_read(room)) and (factors := _divide_bytes(known, size)):
                        return factors
        return None

    def macro(self, name: str) -> tuple[list[str], str] | None:
        """The parameters and the text of a macro, or of a function that only returns something."""
        macro = rf"^[ \t]*#[ \t]*define[ \t]+{name}(\([^)]*\))?[ \t]+([^\n]+)$"
        if found := re.search(macro, self.all, re.MULTILINE):
            return [p.strip() for p in (found[1] or "()")[1:-1].split(",") if p.strip()], found[2]
        if found := re.search(rf"\b{name}\s*\(([^()]*)\)\s*\{{\s*return\s+([^;]+);\s*\}}", self.all):
            return [p.split()[-1].lstrip("&*") for p in found[1].split(",") if p.strip()], found[2]
        return None


@dataclass
class HostCall:
    """One launch; ``scope`` is the text of the function around it, up to it; ``depth`` of what is being read."""

    host: HostProgram
    where: str
    scope: str
    arguments: list[str]
    configuration: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    open: dict[str, str] = field(default_factory=dict)
    depth: int = 0

    def launch(self) -> HostLaunch:
        if len(self.configuration) < 2:
            raise _Unknown("a launch has a grid and a block")
        block = [self._block(text) for text in self._dimensions(self.configuration[1])]
        grid = [self.read_text(text) for text in self._dimensions(self.configuration[0])]
        known = self.try_read(self.configuration[2]) if len(self.configuration) > 2 else None
        shared = "" if known is None or _value(known) == 0 else ast.unparse(known)
        return HostLaunch(self.where, tuple(grid), tuple(block), shared, tuple(self.open.values()))

    def value(self, text: str) -> str:
        """A value of a template: a number where it is one, else the text."""
        found = self.try_read(text)
        return text if found is None or _value(found) is None else ast.unparse(found)

    def _block(self, text: str) -> str:
        try:
            return self.read_text(text)
        except _Unknown as problem:
            name = str(problem)
            if not name.isidentifier():
                raise
            return self.open.setdefault(name, f"open_{name}")

    def _dimensions(self, text: str, depth: int = 0) -> list[str]:
        """The texts of a dim3, or of a number."""
        text = text.strip()
        if match := re.match(r"dim3\s*[({]", text):
            return split(text[match.end() : -1])
        if text.isidentifier() and depth < _DEEPEST:
            if inside := self._get_bracket_content(rf"\bdim3\b[^;]*?\b{text}\s*[({{]"):
                return split(inside)
            if value := self._set(rf"\bdim3\s+{text}"):
                return self._dimensions(value, depth + 1)
            if found := [f"{text}.{a}" for a in "xyz" if self._set(rf"\b{text}\s*\.\s*{a}")]:
                return found
        return [text]

    def _find_last(self, pattern: str) -> int | None:
        """Where the last match in the scope ends."""
        return max((found.end() for found in re.finditer(pattern, self.scope)), default=None)

    def _get_bracket_content(self, pattern: str) -> str:
        """What stands in the bracket that the pattern ends with."""
        end = self._find_last(pattern)
        return _get_inside(self.scope, end - 1) if end else ""

    def _set(self, pattern: str) -> str:
        """What is assigned to the pattern last."""
        end = self._find_last(rf"{pattern}\s*=(?!=)")
        return self.scope[end:].split(";")[0] if end else ""

    # -- arithmetic -------------------------------------------------------------------------------------

    def read_text(self, text: str) -> str:
        """``read`` as text."""
        return ast.unparse(self.read(text))

    def try_read(self, text: str) -> ast.expr | None:
        """``read``, None where something in it is not explained."""
        try:
            return self.read(text)
        except _Unknown:
            return None

    def read(self, text: str) -> ast.expr:
        """The expression over the kernel's parameters. Raises _Unknown with the name that nothing explains."""
        if self.depth > _DEEPEST or len(text) > _LONGEST:
            raise _Unknown(text.strip()[:_LONGEST])
        if ternary := _TERNARY.match(_strip_parentheses(text)):
            text = f"({ternary['then']}) if ({ternary['test']}) else ({ternary['other']})"
        text = _SUFFIX.sub(r"\1", _CAST.sub("", _SIZEOF.sub(self._size, text)))
        text = text.replace("&&", " and ").replace("||", " or ").strip()
        self.depth += 1
        try:
            return self._read_node(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _Unknown(repr(text)) from None
        finally:
            self.depth -= 1

    def _size(self, found: "re.Match[str]") -> str:
        name = found[1].split()[-1]
        known = (size for size, names in _SIZES.items() if name in names.split())
        return str(next(known, 0) or self.host.records.get(name) or "unknown_size")

    def _read_node(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant(value=int() | float() as number):
                if number != int(number):
                    raise _Unknown(f"{number} is no whole number")
                return ast.Constant(int(number))
            case ast.Name(id=name):
                return self._read_name(name)
            case ast.BinOp(left, operator, right):
                return _join(operator, self._read_node(left), self._read_node(right))
            case ast.UnaryOp(ast.USub(), operand):
                return _join(ast.Sub(), ast.Constant(0), self._read_node(operand))
            case ast.IfExp(test, then, other):
                return ast.IfExp(self._read_node(test), self._read_node(then), self._read_node(other))
            case ast.Compare(left, [operator], [right]):
                return ast.Compare(self._read_node(left), [operator], [self._read_node(right)])
            case ast.Call(ast.Name(id=name), arguments, []):
                return self._read_call(name, arguments)
            case ast.Subscript(ast.Name(id=name), ast.Constant(value=int() as place)):
                items = split(self._get_bracket_content(rf"\b{name}\s*\[[^\]]*\]\s*=\s*\{{"))
                if text := "".join(items[place : place + 1]):
                    return self.read(text)
            case ast.Attribute(ast.Name(id=name), attribute):
                if name in self.arguments:
                    return ast.Name(f"{self.host.parameters[self.arguments.index(name)]}_{attribute}")
                if text := self._set(rf"\b{name}\s*\.\s*{attribute}"):
                    return self.read(text)
                if attribute in "xyz" and len(found := self._dimensions(name)) > 1:
                    return self.read([*found, "1", "1"]["xyz".index(attribute)])
        raise _Unknown(repr(ast.unparse(node)))

    def _read_call(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        if (_ROUNDED_UP.search(name) and len(arguments) == 2) or name in ("min", "max"):
            return _call(name if name in ("min", "max") else "ceil_div", *map(self._read_node, arguments))
        if name in ("ceil", "ceilf", "floor", "floorf") and len(arguments) == 1:
            match self._read_node(arguments[0]):  # a quotient of whole numbers is one
                case ast.BinOp(whole, ast.FloorDiv(), by) if name in ("ceil", "ceilf"):
                    return _call("ceil_div", whole, by)
                case inner:
                    return inner
        if (known := self.host.macro(name)) and len(known[0]) == len(arguments):
            given = dict(zip(known[0], (f"({ast.unparse(a)})" for a in arguments), strict=True))
            return self.read(replace_names(known[1], given))
        raise _Unknown(f"{name}(...)")

    def _read_name(self, name: str) -> ast.expr:
        if name in self.arguments:
            parameter = self.host.parameters[self.arguments.index(name)]
            if parameter in self.host.numbers:
                return ast.Name(parameter)
        if name in self.open:
            return ast.Name(self.open[name])
        if (macro := self.host.macro(name)) and not macro[0]:
            return self.read(macro[1])
        found = {text.strip() for text in self.find_values(name)}
        if len(found) == 1:
            return self.read(found.pop())
        raise _Unknown(name)

    def find_values(self, name: str) -> Iterator[str]:
        """What a variable is given, in the function, or where it is a constant of the file."""
        for match in re.finditer(rf"\b{name}\s*[-+*/%|&]?=(?!=)", self.scope):
            yield split(self.scope[match.end() :].split(";")[0])[0]
        if made := self._get_bracket_content(rf"\b{_TYPE}\s+{name}\s*\("):
            yield made
        constant = (
            rf"\b(?:const|constexpr|static|enum)\b[^;=(){{}}]*\{{?[^;(){{}}]*?\b{name}\s*=\s*([^;,}}]+)"
        )
        if self._find_last(rf"\b{name}\s*=(?!=)") is None and (found := re.search(constant, self.host.all)):
            yield found[1]


def _join(operator: ast.operator, left: ast.expr, right: ast.expr) -> ast.expr:
    if isinstance(operator, ast.LShift | ast.RShift):
        if (bits := _value(right)) is None:
            raise _Unknown("a shift by what is no number")
        right = ast.Constant(1 << bits)
        operator = ast.Mult() if isinstance(operator, ast.LShift) else ast.Div()
    if isinstance(operator, ast.Div):
        operator = ast.FloorDiv()
    if not isinstance(operator, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod):
        raise _Unknown(type(operator).__name__)
    if (_value(left) or 0) < 0 and isinstance(operator, ast.FloorDiv | ast.Mod):
        raise _Unknown("a negative number, divided")  # which C rounds to zero, or takes for an unsigned one
    if _value(left) is not None and _value(right) is not None:
        return ast.Constant(int(Computed(ast.unparse(ast.BinOp(left, operator, right))).evaluate({})))
    return _simplify_round_up(ast.BinOp(left, operator, right))


def _simplify_round_up(node: ast.expr) -> ast.expr:
    """``(n + 15) // 16``, ``(n + b - 1) // b`` and ``1 + (n - 1) // 16`` are ceil_div(n, 16)."""
    match node:
        case ast.BinOp(ast.BinOp(whole, ast.Add(), plus), ast.FloorDiv(), by) if _is_one_less(plus, by):
            return _call("ceil_div", whole, by)
        case ast.BinOp(ast.BinOp(ast.BinOp(one, ast.Add(), other), ast.Sub(), one_), ast.FloorDiv(), by):
            for whole, plus in ((one, other), (other, one)):
                if _value(one_) == 1 and ast.unparse(plus) == ast.unparse(by):
                    return _call("ceil_div", whole, by)
        case ast.BinOp(one, ast.Add(), other):
            match one if _value(other) == 1 else other if _value(one) == 1 else None:
                case ast.BinOp(ast.BinOp(whole, ast.Sub(), ast.Constant(1)), ast.FloorDiv(), by):
                    return _call("ceil_div", whole, by)
    return node


def _is_one_less(plus: ast.expr, by: ast.expr) -> bool:
    value = _value(by)
    return ast.unparse(plus) == (f"{ast.unparse(by)} - 1" if value is None else str(value - 1))


def _value(node: ast.expr) -> int | None:
    """The number that it is."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name), list(arguments), [])


def _divide_bytes(bytes_: ast.expr, size: int) -> list[str]:
    """The factors of a number of bytes over the bytes of an element; none where elements do not divide it."""
    factors, constant, open_ = list[str](), 1, [bytes_]
    while open_:
        match open_.pop():
            case ast.BinOp(left, ast.Mult(), right):
                open_ += [right, left]
            case factor:
                constant *= _value(factor) or 1
                factors += [] if _value(factor) is not None else [ast.unparse(factor)]
    elements, rest = divmod(constant, size)
    return [] if rest else [*factors, *([str(elements)] if elements > 1 or not factors else [])]


# -- text -------------------------------------------------------------------------------------------------


def split(text: str) -> list[str]:
    """The items between commas that no bracket holds."""
    items, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            items.append("")
        else:
            items[-1] += letter
    return [item.strip() for item in items]


def find_close(text: str, begin: int, brackets: tuple[str, str] = ("([{", ")]}")) -> int:
    """Where the bracket at ``begin`` closes."""
    depth = 0
    for place in range(begin, len(text)):
        depth += (text[place] in brackets[0]) - (text[place] in brackets[1])
        if not depth:
            return place
    return len(text)


def _get_inside(text: str, begin: int) -> str:
    """What is in the bracket at ``begin``."""
    return text[begin + 1 : find_close(text, begin)]


def _strip_parentheses(text: str) -> str:
    text = text.strip()
    while text.startswith("(") and find_close(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def replace_names(text: str, names: Mapping[str, str]) -> str:
    """With other words for those names."""
    return re.sub(r"[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), text)


def _scope(text: str, place: int) -> str:
    """From the beginning of the function around the place (a brace in the first column closes one) up to it."""
    return text[max(text.rfind("\n}", 0, place), 0) : place]


def divisors(grid: str) -> Iterator[tuple[str, str, bool]]:
    """What is divided by a number or a name in a grid, by which, and whether the quotient is rounded up."""
    for node in ast.walk(ast.parse(grid, mode="eval")):
        match node:
            case ast.BinOp(whole, ast.FloorDiv(), ast.Constant() | ast.Name() as by):
                yield ast.unparse(whole), ast.unparse(by), False
            case ast.Call(ast.Name(id="ceil_div"), [whole, ast.Constant() | ast.Name() as by]):
                yield ast.unparse(whole), ast.unparse(by), True


def steps(whole: str, by: int) -> dict[str, int]:
    """What each size in an expression may be a multiple of, for ``by`` to divide it."""
    names = sorted(identifiers(whole) - {"ceil_div", "min", "max"})
    is_product = re.fullmatch(r"[\w\s*]+", whole)
    step = next(s for s in range(1, by + 1) if s ** len(names) % by == 0) if is_product else by
    return dict.fromkeys(names, step * math.prod(map(int, re.findall(r"// (\d+)", whole))))

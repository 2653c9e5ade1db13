"""What a host program says of a kernel: how it is launched, and how much room its arrays have.

It is read from the text, since a host program rarely parses without its headers.

C++ arithmetic is read as Python's, with what the host's variables stand for put in, until only the kernel's parameters,
numbers and names of open block sizes are left: an expression of family.yaml.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from autotune.adopt.source import Source
from autotune.declaration import Expression as Computed
from autotune.errors import AutotuneError

_DEEPEST = 12
_LONGEST = 300
_SIZES = {"char": 1, "bool": 1, "int8_t": 1, "uint8_t": 1, "uchar": 1, "short": 2, "int16_t": 2, "uint16_t": 2,
          "half": 2, "__half": 2, "__nv_bfloat16": 2, "nv_bfloat16": 2, "int": 4, "unsigned": 4, "uint": 4, "float": 4,
          "int32_t": 4, "uint32_t": 4, "double": 8, "long": 8, "size_t": 8, "int64_t": 8, "uint64_t": 8, "float2": 8,
          "int2": 8, "uint2": 8, "float3": 12, "int3": 12, "float4": 16, "int4": 16, "uint4": 16, "double2": 16,
          "uchar4": 4, "double4": 32}  # fmt: skip
_TYPE = (
    r"(?:const\s+)?(?:unsigned\s+|signed\s+|long\s+)*"
    r"(?:int|char|short|long|float|double|unsigned|size_t|u?int\d+_t|uint)"
)
_CAST = re.compile(rf"\(\s*{_TYPE}\s*\)|\b(?:static_cast\s*<\s*{_TYPE}\s*>|{_TYPE})(?=\s*\()|\bstd\s*::\s*")
_SIZEOF = re.compile(r"\bsizeof\s*\(?\s*((?:struct\s+|const\s+|unsigned\s+|long\s+)*\w+)\s*\)?")
_SUFFIX = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?)(?:[uUlL]+|[fF])\b")
_TERNARY = re.compile(r"^\s*(?P<test>[^?:]+)\?(?P<then>[^?:]+):(?P<other>[^?:]+)$")
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|\\\n", re.DOTALL)
_ROUNDED_UP = re.compile(r"ceil_?div|div_?(?:round_?)?up|div_?ceil|cdiv|ceiling_div", re.IGNORECASE)
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
class Host:
    """``parameters`` are the kernel's, in their order; ``numbers`` those of them that are whole numbers."""

    source: Source
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
    def _all(self) -> str:
        return "\n".join(self.texts.values())

    # -- the launch -------------------------------------------------------------------------------------

    @cached_property
    def calls(self) -> "list[Call]":
        """Every ``kernel<values><<<grid, block>>>(arguments)``."""
        found = []
        begin = rf"\b{re.escape(self.kernel)}\s*(?:<(?P<values>[^<>;(){{}}]*)>\s*)?<<<"
        for name, text in self.texts.items():
            for match in re.finditer(begin, text):
                end = text.find(">>>", match.end())
                opened = text.find("(", end)
                if end < 0 or opened < 0 or text[end + 3 : opened].strip():
                    continue
                where = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
                values = [v.strip() for v in (match["values"] or "").split(",") if v.strip()]
                scope = _scope(text, match.start())
                found.append(Call(self, where, scope, values, split(text[match.end() : end]),
                                  split(text[opened + 1 : closed(text, opened)])))  # fmt: skip
        return found

    @cached_property
    def launch(self) -> HostLaunch | None:
        """The first launch that can be said in terms of the kernel's parameters."""
        for call in self.calls:
            try:
                return call.launch()
            except _Unknown as problem:
                told = (
                    f"{problem} is none of the kernel's numbers" if str(problem).isidentifier() else problem
                )
                self.not_understood = (
                    self.not_understood or f"the launch in {call.where} is not understood ({told})"
                )
        return None

    def asked(self, grid: str, block: str) -> HostLaunch:
        """What the command line says. Raises AutotuneError for what is no expression."""
        reader = Call(self, "the command line", "", [], [], list(self.parameters))
        said = []
        for option, text in (("--grid", grid), ("--block", block)):
            try:
                said.append(tuple(written(reader.read(item, 0)) for item in split(text)))
            except _Unknown as problem:
                known = ", ".join(sorted(self.numbers)) or "none"
                raise AutotuneError(
                    f"{option} {text!r}: {problem}; the kernel's numbers are {known}"
                ) from None
        return HostLaunch("the command line", said[0], said[1], is_asked=True)

    def relations(self) -> Iterator[tuple[str, str]]:
        """Numbers of the kernel that the program makes of others, or fixes, each with what it is."""
        for call in self.calls[:1]:
            for parameter, text in zip(self.parameters, call.arguments, strict=False):
                given = {item.strip() for item in call.given(text)} if text.isidentifier() else {text}
                others = [
                    a if p != parameter else "" for p, a in zip(self.parameters, call.arguments, strict=False)
                ]
                if parameter in self.numbers and len(given) == 1:
                    try:
                        yield parameter, written(replace(call, arguments=others).read(given.pop(), 0))
                    except _Unknown:
                        continue

    def elements(self, array: str, size: int) -> list[str] | None:
        """The factors of how many elements of ``size`` bytes the host allocates for an array; None where it is not
        known."""
        place = self.parameters.index(array)
        for call in self.calls:
            named = call.arguments[place] if place < len(call.arguments) else ""
            for text in self.texts.values():
                for match in _ALLOCATED.finditer(text):
                    if match[1] != re.sub(r"^\(.*?\)\s*", "", named):
                        continue
                    end = closed(text, text.index("(", match.start()))
                    room = split(text[match.end() : end])[0]
                    inside = Call(self, call.where, _scope(text, match.start()), [], [], call.arguments)
                    try:
                        return _over(inside.read(room, 0), size)
                    except _Unknown:
                        continue
        return None

    # -- names ------------------------------------------------------------------------------------------

    def macro(self, name: str) -> tuple[list[str], str] | None:
        """The parameters and the text of a macro, or of a function that only returns something."""
        called = re.search(
            rf"^[ \t]*#[ \t]*define[ \t]+{name}(\([^)]*\))?[ \t]+([^\n]+)$", self._all, re.MULTILINE
        )
        if called:
            return [p.strip() for p in (called[1] or "()")[1:-1].split(",") if p.strip()], called[2]
        returned = re.search(rf"\b{name}\s*\(([^()]*)\)\s*\{{\s*return\s+([^;]+);\s*\}}", self._all)
        if returned:
            return [p.split()[-1].lstrip("&*") for p in returned[1].split(",") if p.strip()], returned[2]
        return None


@dataclass
class Call:
    """One launch; ``scope`` is the text of the function around it, up to it."""

    host: Host
    where: str
    scope: str
    values: list[str]
    configuration: list[str]
    arguments: list[str]
    open: dict[str, str] = field(default_factory=dict)

    def launch(self) -> HostLaunch:
        if len(self.configuration) < 2:
            raise _Unknown("a launch has a grid and a block")
        block = [self._block(text) for text in self._dimensions(self.configuration[1])]
        grid = [written(self.read(text, 0)) for text in self._dimensions(self.configuration[0])]
        shared = ""
        if len(self.configuration) > 2:
            try:
                shared = written(self.read(self.configuration[2], 0))
            except _Unknown:
                shared = ""
        shared = "" if shared == "0" else shared
        return HostLaunch(self.where, tuple(grid), tuple(block), shared, tuple(self.open.values()))

    def value(self, text: str) -> str:
        """A value of a template: a number where it is one, else the text."""
        try:
            found = self.read(text, 0)
        except _Unknown:
            return text
        return str(found.value) if isinstance(found, ast.Constant) else text

    def _block(self, text: str) -> str:
        try:
            return written(self.read(text, 0))
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
            if match := self._last(rf"\bdim3\b[^;]*?\b{text}\s*[({{]"):
                return split(self.scope[match.end() : closed(self.scope, match.end() - 1)])
            if match := self._last(rf"\bdim3\s+{text}\s*=\s*"):
                return self._dimensions(
                    self.scope[match.end() : self.scope.index(";", match.end())], depth + 1
                )
            if found := [f"{text}.{a}" for a in "xyz" if self._last(rf"\b{text}\s*\.\s*{a}\s*=(?!=)")]:
                return found
        return [text]

    def _last(self, pattern: str) -> "re.Match[str] | None":
        found = list(re.finditer(pattern, self.scope))
        return found[-1] if found else None

    # -- arithmetic -------------------------------------------------------------------------------------

    def read(self, text: str, depth: int) -> ast.expr:
        """The expression over the kernel's parameters. Raises _Unknown with the name that nothing explains."""
        if depth > _DEEPEST or len(text) > _LONGEST:
            raise _Unknown(text.strip()[:_LONGEST])
        if twin := self._twin(text):
            return ast.Name(twin)
        if ternary := _TERNARY.match(_bare(text)):
            text = f"({ternary['then']}) if ({ternary['test']}) else ({ternary['other']})"
        text = _SIZEOF.sub(self._size, text)
        text = _SUFFIX.sub(r"\1", _CAST.sub("", text)).replace("&&", " and ").replace("||", " or ")
        try:
            return self._of(ast.parse(text.strip(), mode="eval").body, depth)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _Unknown(repr(text.strip())) from None

    def _twin(self, text: str) -> str:
        """The parameter that is given what a variable of exactly this text holds; empty where there is none."""
        if text.strip().isalnum():
            return ""
        for parameter, argument in zip(self.host.parameters, self.arguments, strict=False):
            held = self.given(argument) if parameter in self.host.numbers and argument.isidentifier() else ()
            if {re.sub(r"\s", "", one) for one in held} == {re.sub(r"\s", "", text)}:
                return parameter
        return ""

    def _size(self, found: "re.Match[str]") -> str:
        words = found[1].split()
        size = _SIZES.get(words[-1]) or self.host.records.get(words[-1])
        return str(size) if size else "unknown_size"

    def _of(self, node: ast.expr, depth: int) -> ast.expr:  # noqa: C901, PLR0912 - a case for each kind of node
        match node:
            case ast.Constant(value=int() | float() as number_):
                if number_ != int(number_):
                    raise _Unknown(f"{number_} is no whole number")
                return ast.Constant(int(number_))
            case ast.Name(id=name):
                return self._named(name, depth)
            case ast.BinOp(left, operator, right):
                return self._joined(operator, self._of(left, depth), self._of(right, depth))
            case ast.UnaryOp(ast.USub(), operand):
                return self._joined(ast.Sub(), ast.Constant(0), self._of(operand, depth))
            case ast.IfExp(test, then, other):
                return ast.IfExp(self._of(test, depth), self._of(then, depth), self._of(other, depth))
            case ast.Compare(left, [operator], [right]):
                return ast.Compare(self._of(left, depth), [operator], [self._of(right, depth)])
            case ast.Call(ast.Name(id=name), arguments, []):
                return self._called(name, arguments, depth)
            case ast.Subscript(ast.Name(id=name), ast.Constant(value=int() as place)):
                if match := self._last(rf"\b{name}\s*\[[^\]]*\]\s*=\s*\{{"):
                    items = split(self.scope[match.end() : closed(self.scope, match.end() - 1)])
                    if place < len(items):
                        return self.read(items[place], depth + 1)
            case ast.Attribute(ast.Name(id=name), attribute):
                if name in self.arguments:
                    return ast.Name(f"{self.host.parameters[self.arguments.index(name)]}_{attribute}")
                if match := self._last(rf"\b{name}\s*\.\s*{attribute}\s*=(?!=)"):
                    return self.read(self.scope[match.end() : self.scope.index(";", match.end())], depth + 1)
                if attribute in "xyz" and len(found := self._dimensions(name)) > 1:
                    place = "xyz".index(attribute)
                    return self.read(found[place], depth + 1) if place < len(found) else ast.Constant(1)
        raise _Unknown(repr(ast.unparse(node)))

    def _joined(self, operator: ast.operator, left: ast.expr, right: ast.expr) -> ast.expr:
        if isinstance(operator, ast.LShift | ast.RShift):
            if not isinstance(right, ast.Constant):
                raise _Unknown("a shift by what is no number")
            right = ast.Constant(1 << int(right.value))  # type: ignore[arg-type]
            operator = ast.Mult() if isinstance(operator, ast.LShift) else ast.Div()
        if isinstance(operator, ast.Div):
            operator = ast.FloorDiv()
        if not isinstance(operator, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod):
            raise _Unknown(type(operator).__name__)
        if isinstance(left, ast.Constant) and int(left.value) < 0 and isinstance(operator, ast.FloorDiv | ast.Mod):  # type: ignore[arg-type]  # fmt: skip
            raise _Unknown(
                "a negative number, divided"
            )  # which C rounds to zero, or takes for an unsigned one
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            return ast.Constant(int(Computed(ast.unparse(ast.BinOp(left, operator, right))).evaluate({})))
        return rounded_up(ast.BinOp(left, operator, right))

    def _called(self, name: str, arguments: list[ast.expr], depth: int) -> ast.expr:
        if name in ("ceil", "ceilf", "ceil_div") or (_ROUNDED_UP.search(name) and len(arguments) == 2):
            if len(arguments) == 1:
                inner = self._of(arguments[0], depth)
                if not (isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.FloorDiv)):
                    return inner
                return _call("ceil_div", inner.left, inner.right)
            return _call("ceil_div", *(self._of(a, depth) for a in arguments))
        if name in ("floor", "floorf") and len(arguments) == 1:
            return self._of(arguments[0], depth)  # a quotient of whole numbers is one
        if name in ("min", "max"):
            return _call(name, *(self._of(a, depth) for a in arguments))
        if (known := self.host.macro(name)) and len(known[0]) == len(arguments):
            given = dict(zip(known[0], (f"({ast.unparse(a)})" for a in arguments), strict=True))
            body = re.sub(r"[A-Za-z_]\w*", lambda found: given.get(found[0], found[0]), known[1])
            return self.read(body, depth + 1)
        raise _Unknown(f"{name}(...)")

    def _named(self, name: str, depth: int) -> ast.expr:
        if name in self.arguments:
            parameter = self.host.parameters[self.arguments.index(name)]
            if parameter in self.host.numbers:
                return ast.Name(parameter)
        if name in self.open:
            return ast.Name(self.open[name])
        if (macro := self.host.macro(name)) and not macro[0]:
            return self.read(macro[1], depth + 1)
        found = {text.strip() for text in self.given(name)}
        if len(found) == 1:
            return self.read(found.pop(), depth + 1)
        raise _Unknown(name)

    def given(self, name: str) -> Iterator[str]:
        """What a variable is given, in the function, or where it is a constant of the file."""
        for match in re.finditer(rf"\b{name}\s*[-+*/%|&]?=(?!=)", self.scope):
            yield split(self.scope[match.end() :].split(";")[0])[0]
        if made := self._last(rf"\b{_TYPE}\s+{name}\s*\("):
            yield self.scope[made.end() : closed(self.scope, made.end() - 1)]
        if not re.search(rf"\b{name}\s*=(?!=)", self.scope):
            for match in re.finditer(rf"\b(?:const|constexpr|static|enum)\b[^;=(){{}}]*\{{?[^;(){{}}]*?\b{name}\s*=\s*([^;,}}]+)", self.host._all):  # noqa: SLF001, E501  # fmt: skip
                yield match[1]
                break


def rounded_up(node: ast.expr) -> ast.expr:
    """``(n + 15) // 16`` and ``1 + (n - 1) // 16`` are ceil_div(n, 16)."""
    match node:
        case ast.BinOp(sum_, ast.FloorDiv(), divisor):
            whole, plus = _plus(sum_)
            if whole is not None and ast.unparse(plus) in _one_less(divisor):
                return _call("ceil_div", whole, divisor)
            if isinstance(sum_, ast.BinOp) and isinstance(sum_.op, ast.Sub) and _is_one(sum_.right):
                inner = sum_.left  # n + b - 1
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
                    for one, other in ((inner.left, inner.right), (inner.right, inner.left)):
                        if ast.unparse(other) == ast.unparse(divisor):
                            return _call("ceil_div", one, divisor)
        case ast.BinOp(one, ast.Add(), other):
            for first, second in ((one, other), (other, one)):
                if (
                    _is_one(first) and isinstance(second, ast.BinOp) and isinstance(second.op, ast.FloorDiv)
                    and isinstance(second.left, ast.BinOp) and isinstance(second.left.op, ast.Sub)
                    and _is_one(second.left.right)
                ):  # fmt: skip
                    return _call("ceil_div", second.left.left, second.right)
    return node


def _plus(sum_: ast.expr) -> tuple[ast.expr | None, ast.expr]:
    if isinstance(sum_, ast.BinOp) and isinstance(sum_.op, ast.Add):
        return sum_.left, sum_.right
    return None, sum_


def _one_less(divisor: ast.expr) -> tuple[str, ...]:
    if isinstance(divisor, ast.Constant):
        return (str(int(divisor.value) - 1),)  # type: ignore[arg-type]
    return (f"{ast.unparse(divisor)} - 1",)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name), list(arguments), [])


def written(node: ast.expr) -> str:
    return ast.unparse(node)


def _over(bytes_: ast.expr, size: int) -> list[str]:
    """The factors of a number of bytes over the bytes of an element."""
    factors, constant = [], 1
    for factor in _factors(bytes_):
        if isinstance(factor, ast.Constant):
            constant *= int(factor.value)  # type: ignore[arg-type]
        else:
            factors.append(written(factor))
    if constant % size:
        raise _Unknown("a number of bytes that elements do not divide")
    constant //= size
    return [*factors, *([str(constant)] if constant > 1 or not factors else [])]


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


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


def closed(text: str, begin: int) -> int:
    """Where the bracket at ``begin`` closes."""
    depth = 0
    for place in range(begin, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if not depth:
            return place
    return len(text)


def _bare(text: str) -> str:
    text = text.strip()
    while text.startswith("(") and closed(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _scope(text: str, place: int) -> str:
    """From the beginning of the function around the place (a brace in the first column closes one) up to it."""
    return text[max(text.rfind("\n}", 0, place), 0) : place]


def divisors(grid: str) -> Iterator[tuple[str, str, bool]]:
    """What is divided by a number or a name in a grid, by which, and whether the quotient is rounded up."""
    for node in ast.walk(ast.parse(grid, mode="eval")):
        match node:
            case ast.BinOp(whole, ast.FloorDiv(), ast.Constant() | ast.Name() as by):
                yield written(whole), written(by), False
            case ast.Call(ast.Name(id="ceil_div"), [whole, ast.Constant() | ast.Name() as by]):
                yield written(whole), written(by), True


def steps(whole: str, by: int) -> dict[str, int]:
    """What each size in an expression may be a multiple of, for ``by`` to divide it."""
    names = sorted(set(re.findall(r"[A-Za-z_]\w*", whole)) - {"ceil_div", "min", "max"})
    is_product = re.fullmatch(r"[\w\s*]+", whole)
    step = next(s for s in range(1, by + 1) if s ** len(names) % by == 0) if is_product else by
    return dict.fromkeys(names, step)

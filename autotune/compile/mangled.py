"""Which symbol of a binary is a kernel or a variable, where the compiler does not say: the Itanium ABI's names, as far
as a name and its template arguments decide them."""

import re
from collections.abc import Collection

from autotune.errors import CompilerError

_BUILTIN = {
    "signed char": "a", "unsigned char": "h", "char": "c", "short": "s", "unsigned short": "t", "int": "i",
    "unsigned int": "j", "long long": "x", "unsigned long long": "y", "float": "f", "double": "d", "bool": "b",
}  # fmt: skip


def instance_symbol(instance: str, symbols: Collection[str]) -> str:
    """The symbol of ``instance``, a kernel's name with its template arguments, if any. Raises CompilerError when none
    of ``symbols`` is it, or several may be."""
    name, _, arguments = instance.partition("<")
    if name in symbols:  # extern "C"
        return name
    pattern = re.compile(_pattern(name, arguments.removesuffix(">")))
    matches = [symbol for symbol in symbols if pattern.match(symbol)]
    if len(matches) == 1:
        return matches[0]
    there = ", ".join(sorted(matches or symbols)) or "none"
    what = f"{len(matches)} kernels that may be" if matches else "no symbol for kernel"
    raise CompilerError(
        f"nvcc's output has {what} {instance} ({there}); use --compiler nvrtc, which says which one it is"
    )


def variable_names(name: str, image: bytes) -> list[str]:
    """The names in a binary that may be the variable ``name`` of its source: of one in no namespace, its own; of one
    that is static, with the unit's."""
    *scopes, last = (f"{len(part)}{part}" for part in name.split("::") if part)
    unit = r"(?:\d+_INTERNAL_\w+?)?"
    mangled = rf"_ZN?{unit}{''.join(scopes)}L?{last}E?"
    pattern = mangled if scopes else f"{name}|{mangled}"
    found = re.findall(rf"(?<=\0)(?:{pattern})(?=\0)".encode(), image)
    return sorted({text.decode() for text in found}, key=len)


def _pattern(name: str, arguments: str) -> str:
    """``ns::sum<16>`` is ``_ZN2ns3sumILi16EEE…``: a name after its length; what is in no namespace has no N."""
    *scopes, last = (f"{len(part)}{part}" for part in name.split("::") if part)
    listed = "".join(_argument(text.strip()) for text in arguments.split(",")) if arguments else ""
    template = f"I{listed}E" if arguments else "(?!I)"
    within = "".join(scopes)
    return f"_ZN{within}L?{last}{template}" if scopes else f"_Z(?:N\\w*?)?L?{last}{template}"


def _argument(text: str) -> str:
    if re.fullmatch(r"-?\d+", text):
        return f"L[a-z]{text.replace('-', 'n')}E"
    if text in ("true", "false"):
        return f"Lb{int(text == 'true')}E"
    return _BUILTIN.get(text, r"\w+?")

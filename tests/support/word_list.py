"""Words that text for users does not have, and what stands there instead.

``WORDS`` is read by the test of the pages and by the test of help, messages and docstrings. Code in backticks, fenced
blocks, comments and link targets are no text: a workload may be called ``ragged``.
"""

import re

__all__ = ["WORDS", "find_words", "remove_code"]

WORDS: dict[str, str] = {
    "verdict": "verification",
    "told": "reported",
    "beside": "compared with, next to",
    "as it stands": "unmodified",
    "as they stand": "unmodified",
    "goes by": "is decided by",
    "go by": "are decided by",
    "anew": "again",
    "lies": "is stored",
    "so many": "that many",
    "so-manieth": "n-th",
    "how manyth": "n-th",
    "refused": "rejected",
    "ragged sizes": "odd sizes",
    "strays": "out-of-bounds writes",
    "pulse": "heartbeat",
    "lent": "borrowed from another library",
    "outlet": "copy queue",
    "mover": "layout transform",
    "seal": "checksum",
    "mend": "restore",
    "mended": "fixed",
    "asks alike": "gives the same sequence",
    "what bounds": "the bottleneck",
    "by chance": "at random",
    "of no account": "does not matter",
    "foretell": "predict",
    "foretold": "predicted",
    "lets go of": "frees",
    "whoever": "a reader who, a process that",
    "not to be had": "not available",
}

_LISTED = re.compile(rf"(?<![\w-])(?:{'|'.join(WORDS).replace(' ', chr(92) + 's+')})(?![\w-])", re.IGNORECASE)
_CODE = re.compile(
    r"^```.*?^```$|<!--.*?-->|``.*?``|`[^`\n]*`|(?<=\])\([^)\s]*\)|https?://\S+", re.MULTILINE | re.DOTALL
)


def remove_code(text: str) -> str:
    """Return Markdown or a docstring without fenced blocks, inline code, comments and link targets.

    Line breaks are kept, so that a line of the result is the line of ``text`` with the same number.
    """
    return _CODE.sub(lambda match: "\n" * match[0].count("\n"), text)


def find_words(text: str) -> list[str]:
    """Return ``line N: WORD -> REPLACEMENT`` for each listed word in ``text``, whatever its case."""
    plain = remove_code(text)
    found = ((match.start(), " ".join(match[0].lower().split())) for match in _LISTED.finditer(plain))
    return [f"line {plain.count(chr(10), 0, at) + 1}: {word} -> {WORDS[word]}" for at, word in found]

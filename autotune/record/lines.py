"""Lines of a journal: one JSON object each, with a checksum that tells what a disk or a person damaged."""

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

_CHECKSUM = re.compile(
    rb',"crc32":"([0-9a-f]{8})"}\n'
)  # the end of a line; those of earlier versions have none


def line_of(content: Mapping[str, Any]) -> bytes:
    """As it is written: JSON with the checksum of what stands before it as its last member."""
    body = json.dumps(content, separators=(",", ":")).encode().removesuffix(b"}")
    return b'%s,"crc32":"%08x"}\n' % (body, zlib.crc32(body))


def content_of(line: bytes) -> dict[str, Any] | None:
    """What a line holds; None for one that is no object, or not as it was written."""
    found = _CHECKSUM.search(line, max(0, len(line) - 21))
    if found and zlib.crc32(line[: found.start()]) != int(found[1], 16):
        return None
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def has_checksum(line: bytes) -> bool:
    """Whether a line ends as those of this version do."""
    return _CHECKSUM.search(line, max(0, len(line) - 21)) is not None

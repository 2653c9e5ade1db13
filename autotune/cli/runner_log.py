"""The log of a GitHub job: a runner takes lines of it for commands, whoever wrote what they repeat."""

import re
from typing import Any, TextIO

_COMMAND = re.compile(r"((?:^|(?<=[\r\n]))\s*:)(?=:)|(##)(?=\[)")  # both forms of one


class Inert:
    """``stream``, on which nothing is a command: a space parts the characters that begin one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_COMMAND.sub(lambda found: f"{found[0]} ", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

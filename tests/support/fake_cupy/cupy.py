"""The part of CuPy that launchers use, on the host. A kernel's text is Python that defines a function
of its name, which gets the macros, the grid and the block in addition to its arguments."""

from typing import Any


class RawKernel:
    def __init__(self, code: str, name: str, options: tuple[str, ...] = (), backend: str = "nvrtc") -> None:
        self.code, self.name, self.options, self.backend = code, name, options, backend

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        space: dict[str, Any] = {}
        exec(self.code, space)
        macros = dict(
            option.removeprefix("-D").split("=") for option in self.options if option.startswith("-D")
        )
        space[self.name](*args, macros=macros, grid=grid, block=block, shared=shared_mem)


class RawModule:
    def __init__(self, *, code: str, options: tuple[str, ...] = (), backend: str = "nvrtc") -> None:
        self.code, self.options, self.backend = code, options, backend

    def get_function(self, name: str) -> RawKernel:
        return RawKernel(self.code, name, self.options, self.backend)


class Parameter:
    def __init__(self, text: str) -> None:
        *raw, self.ctype, self.name = text.split()
        self.raw, self.dtype = bool(raw), None


class ElementwiseKernel:
    def __init__(
        self, inputs: str, outputs: str, operation: str, name: str = "kernel", preamble: str = ""
    ) -> None:
        self.in_params, self.out_params = (
            tuple(Parameter(one.strip()) for one in text.split(",")) for text in (inputs, outputs)
        )
        self.operation, self.name, self.preamble = operation, name, preamble

    def __call__(self, *args: Any, size: int | None = None, block_size: int = 128) -> None:
        names = [one.name for one in (*self.in_params, *self.out_params)]
        macros = dict(line.split()[1:] for line in self.preamble.splitlines() if line.startswith("#define"))
        target, _, value = self.operation.partition("=")
        given = dict(zip(names, args, strict=True))
        number = {name: int(text) for name, text in macros.items()}
        given[target.strip()][...] = eval(value, {**given, **number, "block_size": block_size})

"""What a cuda device holds for a caller: placed data, loaded modules; and the bytes of a launch's parameters."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from autotune.compile import Compiled, variable_names
from autotune.device.backend import LaunchError, make_raw
from autotune.device.cuda.calls import ConstantWindow
from autotune.device.cuda.image import Image
from autotune.layout import Stored

# The one symbol behind every constant layout: memory.cuh's constant_window<65536>.
CONSTANT_BYTES = 65536
CONSTANT_WINDOW = f"_ZN8autotune15constant_windowILi{CONSTANT_BYTES}EEE"
_MOST_IMAGES = 16  # a sweep walks through images in order


class _Owner(Protocol):
    """The backend that placed the data."""

    driver_error: type[Exception]

    def current(self) -> AbstractContextManager[None]: ...


@dataclass
class CudaPlaced:
    """Data on the GPU. ``address`` is 0 for constant memory, and for a texture's plane. An ``image`` has linear memory
    at its ``address`` where something on the device writes or reads it that has no accessor: ``push`` and ``pull`` copy
    between the two. ``uploads`` counts how often the content was replaced."""

    stored: Stored
    argument: bytes
    address: int
    _backend: _Owner
    owned: list[Any]
    uploads: int = 0
    guard: int = 0  # bytes on either side that are its own
    image: Image | None = None

    @property
    def guards(self) -> "Sequence[CudaPlaced]":
        begins = (self.address - self.guard, self.address + self.stored.nbytes) if self.guard else ()
        return [CudaPlaced(make_raw(self.guard), b"", begin, self._backend, []) for begin in begins]

    def push(self, stream: int) -> None:
        """What was written at ``address`` is what kernels find in the image."""
        if self.image is not None and self.address:
            self.image.write(self.address, stream)

    def pull(self, stream: int) -> None:
        """What kernels wrote to the image is at ``address``."""
        if self.image is not None and self.image.is_surface:
            self.image.read(self.address, stream)

    def free(self) -> None:
        """Safe after a lost context: the driver has freed everything with it."""
        with suppress(LaunchError, self._backend.driver_error), self._backend.current():
            for item in self.owned:
                item.free()
        self.owned.clear()


@dataclass
class CudaModule:
    """``window`` is the binary's, whose variants share it; ``handles`` are the driver's, of the functions that were
    launched cooperatively."""

    image: Path
    module: Any
    window: ConstantWindow
    functions: dict[str, Any]
    handles: dict[str, int] = field(default_factory=dict)
    driver: Any = None
    numbers: Mapping[str, int] = field(default_factory=dict)
    _variables: dict[str, tuple[int, int] | None] = field(default_factory=dict)

    @property
    def lock(self) -> AbstractContextManager[Any]:
        return self.window.lock

    def variable(self, symbol: str) -> tuple[int, int] | None:
        """Where an array of the source is, and how many bytes it has; None when the compiler left it out. The context
        is current. Raises LaunchError for one that is in the binary and that the driver does not find."""
        if symbol not in self._variables:
            names = variable_names(symbol, self.image.read_bytes())
            found = (_variable(self.driver, self.module, name) for name in names)
            self._variables[symbol] = next((one for one in found if one is not None), None)
            if names and self._variables[symbol] is None:
                raise LaunchError(
                    f"the driver does not find {symbol} in the binary (looked for {', '.join(names)}): declare it "
                    "without static, and outside of an unnamed namespace"
                )
        return self._variables[symbol]

    def unload(self) -> None:
        """Dropped with the backend's table of images; a cubin is shared by the variants in it."""


def load_module(driver: Any, images: dict[Path, Any], compiled: Compiled) -> CudaModule:
    """A variant's functions; ``images`` holds the latest binaries. ``driver`` is pycuda.driver, the context current."""
    if compiled.image not in images:
        while len(images) >= _MOST_IMAGES:
            images.pop(next(iter(images)))
        made = driver.module_from_buffer(compiled.image.read_bytes())
        images[compiled.image] = made, ConstantWindow(driver, partial(constant_window, driver, made))
    module, window = images[compiled.image]
    functions = {kernel: module.get_function(symbol) for kernel, symbol in compiled.symbols.items()}
    return CudaModule(compiled.image, module, window, functions, driver=driver, numbers=compiled.numbers)


def constant_window(driver: Any, module: Any) -> int | None:
    """Where the constant window of a binary of PyCUDA's begins; None when no kernel in it reads one, and the compiler
    left it out."""
    found = _variable(driver, module, CONSTANT_WINDOW)
    return found[0] if found else None


def _variable(driver: Any, module: Any, name: str) -> tuple[int, int] | None:
    """A variable of the binary by the name it has there: address and bytes, or None."""
    try:
        address, size = module.get_global(name)
    except driver.Error as problem:
        if "not found" in str(problem):
            return None
        raise
    return int(address), int(size)


def place(
    driver: Any, owner: _Owner, stored: Stored, module: CudaModule | None, guard: int = 0
) -> CudaPlaced:
    """``stored`` in the memory that it asks for, linear memory with a guard; the context is current."""
    kept = replace(stored, buffer=None)
    if stored.memory == "constant":
        assert module is not None and stored.buffer is not None
        with module.window.lock:
            if (address := module.window.address) is not None:
                module.window.claim(0)
                driver.memcpy_htod(address + stored.constant_offset, stored.buffer)
        return CudaPlaced(kept, stored.argument(0), 0, owner, [])
    if stored.raster is not None or (stored.memory == "texture" and stored.plane is not None):
        return _place_image(driver, owner, stored)
    memory = driver.mem_alloc(max(stored.nbytes, 16) + 2 * guard)
    address = int(memory) + guard
    if stored.buffer is not None:
        driver.memcpy_htod(address, stored.buffer)
    made = place_at(owner, stored, address)
    made.guard = guard
    made.owned.append(memory)
    return made


def _place_image(driver: Any, owner: _Owner, stored: Stored) -> CudaPlaced:
    """An input that comes from the host needs no linear memory next to its image."""
    image = Image.make(stored)
    owned: list[Any] = [image]
    address = 0
    if stored.buffer is None or image.is_surface:
        owned.append(driver.mem_alloc(max(stored.nbytes, 16)))
        address = int(owned[-1])
    if stored.buffer is not None:
        image.fill(stored.buffer)
    return CudaPlaced(
        replace(stored, buffer=None), stored.argument(image.handle), address, owner, owned, image=image
    )


def place_at(owner: _Owner, stored: Stored, address: int) -> CudaPlaced:
    """What is at ``address``, as ``stored`` says; for a texture the context is current."""
    kept = replace(stored, buffer=None)
    if stored.memory != "texture":
        return CudaPlaced(kept, stored.argument(address), address, owner, [])
    texture = Image.bind_linear(address, stored)
    return CudaPlaced(kept, stored.argument(texture.handle), address, owner, [texture])

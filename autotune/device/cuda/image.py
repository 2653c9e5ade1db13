"""Textures and surfaces on the GPU: objects over linear memory, or over CUDA arrays and pitched memory that hold the
rows of an image or of a plane. Made with NVIDIA's cuda-bindings on PyCUDA's context: PyCUDA knows texture references
only, which left CUDA with version 12.
"""

from dataclasses import dataclass, field
from typing import Any

from autotune.device.cuda.driver import call, call_all
from autotune.layout import Bytes, Raster, Sampling, Stored

_ADDRESS_MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}  # CU_TR_ADDRESS_MODE_…
_POINT, _LINEAR = 0, 1  # CU_TR_FILTER_MODE_…
_READ_AS_INTEGER, _NORMALISED_COORDINATES = 1, 2  # CU_TRSF_…
_PERIODIC = ("wrap", "mirror")  # which hardware knows of coordinates in units of the extents alone
_SURFACE = 2  # CUDA_ARRAY3D_SURFACE_LDST
_PITCH_UNIT = 16  # bytes: the widest access
_FORMATS = {
    "uint8": "UNSIGNED_INT8", "uint16": "UNSIGNED_INT16", "uint32": "UNSIGNED_INT32",
    "int8": "SIGNED_INT8", "int16": "SIGNED_INT16", "float32": "FLOAT",
}  # fmt: skip


@dataclass
class Image:
    """``handle`` is what a kernel receives: a texture object, or a surface object. One that is made by ``make``
    holds the texels: ``write`` and ``read`` copy them from and to linear memory, where row follows row."""

    handle: int = 0
    is_surface: bool = False
    _row_bytes: int = 0
    _rows: tuple[int, int] = (0, 0)  # height, depth
    _array: Any = None
    _memory: int = 0  # pitched
    _pitch: int = 0
    _owned: list[tuple[str, Any]] = field(default_factory=list)  # what frees it, in order

    @classmethod
    def bind_linear(cls, address: int, stored: Stored) -> "Image":
        """A texture over linear memory at ``address``. Rows of a plane are as far apart as the strides say."""
        made, raster = cls(), Raster(stored.plane or (), "", Sampling())
        if stored.plane:
            resource = _describe_pitched(address, stored, raster, stored.strides[0] * stored.texel_bytes)
        else:
            resource, linear = _resource("LINEAR", "linear")
            linear.devPtr = _driver().CUdeviceptr(address)
            linear.format, linear.numChannels = _format(stored, raster)
            linear.sizeInBytes = stored.nbytes
        made._open(resource, raster)
        return made

    @classmethod
    def make(cls, stored: Stored) -> "Image":
        """Room for ``stored``, without content; the context is current."""
        assert stored.raster or stored.plane, "an image has rows of its own"
        raster = stored.raster or Raster(stored.plane or (), "", Sampling(), is_pitched=stored.pitched)
        width, height, depth = (*raster.size, 1)[:3]
        made = cls(0, raster.is_surface, width * stored.texel_bytes, (height, depth))
        try:
            if raster.is_pitched:
                memory, made._pitch = call_all("cuMemAllocPitch", made._row_bytes, height, _PITCH_UNIT)
                made._memory = int(memory)
                made._owned.append(("cuMemFree", memory))
                resource = _describe_pitched(made._memory, stored, raster, made._pitch)
            else:
                made._array = call("cuArray3DCreate", _description(stored, raster))
                made._owned.append(("cuArrayDestroy", made._array))
                resource, array = _resource("ARRAY", "array")
                array.hArray = made._array
            made._open(resource, raster)
        except BaseException:
            made.free()
            raise
        return made

    def _open(self, resource: Any, raster: Raster) -> None:
        kind, more = ("Surf", ()) if raster.is_surface else ("Tex", (_texture(raster), None))
        made = call(f"cu{kind}ObjectCreate", resource, *more)
        self._owned.insert(0, (f"cu{kind}ObjectDestroy", made))
        self.handle = int(made)

    def fill(self, content: Bytes) -> None:
        """From the host; it has been read when this returns."""
        copy = self._copy(is_write=True)
        copy.srcMemoryType, copy.srcHost = _memory_type("HOST"), content.ctypes.data
        call("cuMemcpy3D", copy)

    def write(self, address: int, stream: int) -> None:
        """Queue a copy from linear memory of the device."""
        copy = self._copy(is_write=True)
        copy.srcMemoryType, copy.srcDevice = _memory_type("DEVICE"), _driver().CUdeviceptr(address)
        call("cuMemcpy3DAsync", copy, _driver().CUstream(stream))

    def read(self, address: int, stream: int) -> None:
        """Queue a copy to linear memory of the device."""
        copy = self._copy(is_write=False)
        copy.dstMemoryType, copy.dstDevice = _memory_type("DEVICE"), _driver().CUdeviceptr(address)
        call("cuMemcpy3DAsync", copy, _driver().CUstream(stream))

    def _copy(self, *, is_write: bool) -> Any:
        """All rows; the linear side has yet to be named."""
        copy = _driver().CUDA_MEMCPY3D()
        height, depth = self._rows
        copy.WidthInBytes, copy.Height, copy.Depth = self._row_bytes, height, depth
        own, other = ("dst", "src") if is_write else ("src", "dst")
        setattr(copy, f"{other}Pitch", self._row_bytes)
        setattr(copy, f"{other}Height", height)
        if self._array is not None:
            setattr(copy, f"{own}MemoryType", _memory_type("ARRAY"))
            setattr(copy, f"{own}Array", self._array)
        else:
            setattr(copy, f"{own}MemoryType", _memory_type("DEVICE"))
            setattr(copy, f"{own}Device", _driver().CUdeviceptr(self._memory))
            setattr(copy, f"{own}Pitch", self._pitch)
            setattr(copy, f"{own}Height", height)
        return copy

    def free(self) -> None:
        """Safe to call twice."""
        owned, self._owned = self._owned, []
        for function, item in owned:
            call(function, item)


def _driver() -> Any:
    from cuda.bindings import driver as bindings

    return bindings


def _resource(kind: str, member: str) -> tuple[Any, Any]:
    """A description, and its part to be filled in."""
    made = _driver().CUDA_RESOURCE_DESC()
    made.resType = getattr(_driver().CUresourcetype, f"CU_RESOURCE_TYPE_{kind}")
    return made, getattr(made.res, member)


def _describe_pitched(address: int, stored: Stored, raster: Raster, pitch: int) -> Any:
    """Rows of linear memory, ``pitch`` bytes apart."""
    resource, target = _resource("PITCH2D", "pitch2D")
    target.devPtr = _driver().CUdeviceptr(address)
    target.format, target.numChannels = _format(stored, raster)
    (target.width, target.height), target.pitchInBytes = raster.size, pitch
    return resource


def _description(stored: Stored, raster: Raster) -> Any:
    made = _driver().CUDA_ARRAY3D_DESCRIPTOR()
    made.Width, made.Height, made.Depth = (*raster.size, 0)[:3]
    made.Format, made.NumChannels = _format(stored, raster)
    made.Flags = _SURFACE if raster.is_surface else 0
    return made


def _format(stored: Stored, raster: Raster) -> tuple[Any, int]:
    """(format, channels) of a texel: of the element's own type where its value counts, else as many bits."""
    sampling = raster.sampling
    if sampling.is_normalised or sampling.is_linear:
        name, channels = _FORMATS[raster.element], 1
    else:
        bits = 8 * min(stored.texel_bytes, 4)
        name, channels = f"UNSIGNED_INT{bits}", max(1, stored.texel_bytes // 4)
    return getattr(_driver().CUarray_format, f"CU_AD_FORMAT_{name}"), channels


def _texture(raster: Raster) -> Any:
    sampling, made = raster.sampling, _driver().CUDA_TEXTURE_DESC()
    made.addressMode = [_driver().CUaddress_mode(_ADDRESS_MODES[sampling.edge])] * 3
    made.filterMode = _driver().CUfilter_mode(_LINEAR if sampling.is_linear else _POINT)
    made.flags = 0 if sampling.is_normalised else _READ_AS_INTEGER
    if sampling.edge in _PERIODIC:
        made.flags |= _NORMALISED_COORDINATES
    return made


def _memory_type(name: str) -> Any:
    return getattr(_driver().CUmemorytype, f"CU_MEMORYTYPE_{name}")

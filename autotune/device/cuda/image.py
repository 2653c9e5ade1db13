"""Images on the GPU: CUDA arrays and pitched memory with the rows of the array itself, read through a texture object or
written through a surface object. Made with NVIDIA's cuda-bindings, as textures are.
"""

from dataclasses import dataclass, field
from typing import Any

from autotune.device.cuda.driver import call, every
from autotune.layout import Bytes, Raster, Stored

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
    """``handle`` is what a kernel receives: a texture object, or a surface object. It holds the texels and nothing
    else: ``write`` and ``read`` copy them from and to linear memory, where row follows row."""

    handle: int
    is_surface: bool
    _row_bytes: int
    _rows: tuple[int, int]  # height, depth
    _array: Any = None
    _memory: int = 0  # pitched
    _pitch: int = 0
    _owned: list[tuple[str, Any]] = field(default_factory=list)  # what frees it, in order

    @classmethod
    def of(cls, stored: Stored) -> "Image":
        """Room for ``stored``, without content; the context is current."""
        raster = stored.raster
        assert raster is not None, "an image has rows of its own"
        width, height, depth = (*raster.size, 1)[:3]
        made = cls(0, raster.is_surface, width * stored.texel_bytes, (height, depth))
        try:
            if raster.is_pitched:
                memory, made._pitch = every("cuMemAllocPitch", made._row_bytes, height, _PITCH_UNIT)
                made._memory = int(memory)
                made._owned.append(("cuMemFree", memory))
            else:
                made._array = call("cuArray3DCreate", _description(stored, raster))
                made._owned.append(("cuArrayDestroy", made._array))
            made._open(stored, raster)
        except BaseException:
            made.free()
            raise
        return made

    def _open(self, stored: Stored, raster: Raster) -> None:
        resource = self._resource(stored, raster)
        if raster.is_surface:
            surface = call("cuSurfObjectCreate", resource)
            self._owned.insert(0, ("cuSurfObjectDestroy", surface))
            self.handle = int(surface)
        else:
            texture = call("cuTexObjectCreate", resource, _texture(raster), None)
            self._owned.insert(0, ("cuTexObjectDestroy", texture))
            self.handle = int(texture)

    def _resource(self, stored: Stored, raster: Raster) -> Any:
        from cuda.bindings import driver as bindings

        resource = bindings.CUDA_RESOURCE_DESC()
        if self._array is not None:
            resource.resType = bindings.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = self._array
            return resource
        resource.resType = bindings.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
        target = resource.res.pitch2D
        target.devPtr = bindings.CUdeviceptr(self._memory)
        target.format, target.numChannels = _format(stored, raster)
        (target.width, target.height), target.pitchInBytes = raster.size, self._pitch
        return resource

    def fill(self, content: Bytes) -> None:
        """From the host; it has been read when this returns."""
        copy = self._copy(is_write=True)
        copy.srcMemoryType, copy.srcHost = _memory_type("HOST"), content.ctypes.data
        call("cuMemcpy3D", copy)

    def write(self, address: int, stream: int) -> None:
        """Queue a copy from linear memory of the device."""
        from cuda.bindings import driver as bindings

        copy = self._copy(is_write=True)
        copy.srcMemoryType, copy.srcDevice = _memory_type("DEVICE"), bindings.CUdeviceptr(address)
        call("cuMemcpy3DAsync", copy, bindings.CUstream(stream))

    def read(self, address: int, stream: int) -> None:
        """Queue a copy to linear memory of the device."""
        from cuda.bindings import driver as bindings

        copy = self._copy(is_write=False)
        copy.dstMemoryType, copy.dstDevice = _memory_type("DEVICE"), bindings.CUdeviceptr(address)
        call("cuMemcpy3DAsync", copy, bindings.CUstream(stream))

    def _copy(self, *, is_write: bool) -> Any:
        """All rows; the linear side has yet to be named."""
        from cuda.bindings import driver as bindings

        copy = bindings.CUDA_MEMCPY3D()
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
            setattr(copy, f"{own}Device", bindings.CUdeviceptr(self._memory))
            setattr(copy, f"{own}Pitch", self._pitch)
            setattr(copy, f"{own}Height", height)
        return copy

    def free(self) -> None:
        """Safe to call twice."""
        owned, self._owned = self._owned, []
        for function, item in owned:
            call(function, item)


def _description(stored: Stored, raster: Raster) -> Any:
    from cuda.bindings import driver as bindings

    made = bindings.CUDA_ARRAY3D_DESCRIPTOR()
    made.Width, made.Height, made.Depth = (*raster.size, 0)[:3]
    made.Format, made.NumChannels = _format(stored, raster)
    made.Flags = _SURFACE if raster.is_surface else 0
    return made


def _format(stored: Stored, raster: Raster) -> tuple[Any, int]:
    """(format, channels) of a texel: of the element's own type where its value counts, else as many bits."""
    from cuda.bindings import driver as bindings

    sampling = raster.sampling
    if sampling.is_normalised or sampling.is_linear:
        name, channels = _FORMATS[raster.element], 1
    else:
        bits = 8 * min(stored.texel_bytes, 4)
        name, channels = f"UNSIGNED_INT{bits}", max(1, stored.texel_bytes // 4)
    return getattr(bindings.CUarray_format, f"CU_AD_FORMAT_{name}"), channels


def _texture(raster: Raster) -> Any:
    from cuda.bindings import driver as bindings

    sampling, made = raster.sampling, bindings.CUDA_TEXTURE_DESC()
    made.addressMode = [bindings.CUaddress_mode(_ADDRESS_MODES[sampling.edge])] * 3
    made.filterMode = bindings.CUfilter_mode(_LINEAR if sampling.is_linear else _POINT)
    made.flags = 0 if sampling.is_normalised else _READ_AS_INTEGER
    if sampling.edge in _PERIODIC:
        made.flags |= _NORMALISED_COORDINATES
    return made


def _memory_type(name: str) -> Any:
    from cuda.bindings import driver as bindings

    return getattr(bindings.CUmemorytype, f"CU_MEMORYTYPE_{name}")

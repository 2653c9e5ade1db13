"""Texture objects, made with NVIDIA's cuda-bindings on PyCUDA's context.

PyCUDA knows texture references only, which left CUDA with version 12.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autotune.device.cuda.driver import call
from autotune.layout import Stored

_POINT, _CLAMP = 0, 1  # CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP
_READ_AS_INTEGER = 1  # CU_TRSF_READ_AS_INTEGER: no promotion to float


@dataclass
class Texture:
    """A texture object and the memory it owns. ``handle`` is what a kernel receives."""

    handle: int
    _owned: list[Any] = field(default_factory=list)

    def free(self) -> None:
        call("cuTexObjectDestroy", self.handle)
        for item in self._owned:
            item.free()
        self._owned.clear()

    @classmethod
    def linear(cls, address: int, stored: Stored) -> "Texture":
        """Over linear memory at ``address``."""
        from cuda.bindings import driver as bindings

        resource = bindings.CUDA_RESOURCE_DESC()
        resource.resType = bindings.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        linear = resource.res.linear
        linear.devPtr = bindings.CUdeviceptr(address)
        linear.format, linear.numChannels = _format(stored.texel_bytes)
        linear.sizeInBytes = stored.nbytes
        return cls(_create(resource))

    @classmethod
    def pitched(cls, address: int, stored: Stored) -> "Texture":
        """Over the plane at ``address`` whose rows are as far apart as the strides of ``stored`` say: no copy."""
        return cls(_create(_pitched(address, stored, stored.strides[0] * stored.texel_bytes)))

    @classmethod
    def plane(cls, driver: Any, stored: Stored) -> "Texture":
        """Over a CUDA array, or over pitched memory, holding a copy of ``stored``. ``driver`` is pycuda.driver."""
        from cuda.bindings import driver as bindings

        assert stored.plane is not None and stored.buffer is not None
        width, height = stored.plane
        row_bytes = width * stored.texel_bytes
        copy = driver.Memcpy2D()
        copy.set_src_host(stored.buffer)
        copy.width_in_bytes = copy.src_pitch = row_bytes
        copy.height = height
        owned: Any
        if stored.pitched:
            owned, pitch = driver.mem_alloc_pitch(row_bytes, height, 16)
            copy.set_dst_device(owned)
            copy.dst_pitch = pitch
            resource = _pitched(int(owned), stored, pitch)
        else:
            description = driver.ArrayDescriptor()
            description.width, description.height = width, height
            description.format = driver.dtype_to_array_format(np.dtype(f"u{min(stored.texel_bytes, 4)}"))
            description.num_channels = _format(stored.texel_bytes)[1]
            owned = driver.Array(description)
            copy.set_dst_array(owned)
            resource = bindings.CUDA_RESOURCE_DESC()
            resource.resType = bindings.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = bindings.CUarray(int(owned.handle))
        copy(aligned=False)
        return cls(_create(resource), [owned])


def _pitched(address: int, stored: Stored, pitch: int) -> Any:
    """The plane of ``stored`` in linear memory, its rows ``pitch`` bytes apart."""
    from cuda.bindings import driver as bindings

    assert stored.plane is not None
    resource = bindings.CUDA_RESOURCE_DESC()
    resource.resType = bindings.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    target = resource.res.pitch2D
    target.devPtr = bindings.CUdeviceptr(address)
    target.format, target.numChannels = _format(stored.texel_bytes)
    (target.width, target.height), target.pitchInBytes = stored.plane, pitch
    return resource


def _format(texel_bytes: int) -> tuple[Any, int]:
    from cuda.bindings import driver as bindings

    formats = bindings.CUarray_format
    by_bytes = {1: formats.CU_AD_FORMAT_UNSIGNED_INT8, 2: formats.CU_AD_FORMAT_UNSIGNED_INT16}
    return by_bytes.get(texel_bytes, formats.CU_AD_FORMAT_UNSIGNED_INT32), max(1, texel_bytes // 4)


def _create(resource: Any) -> int:
    from cuda.bindings import driver as bindings

    texture = bindings.CUDA_TEXTURE_DESC()
    texture.addressMode = [bindings.CUaddress_mode(_CLAMP)] * 3
    texture.filterMode = bindings.CUfilter_mode(_POINT)
    texture.flags = _READ_AS_INTEGER
    return int(call("cuTexObjectCreate", resource, texture, None))

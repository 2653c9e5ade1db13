// An array on the GPU in the memory that its layout asks for, and the accessor through which a kernel reads it.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "tuned/layout.h"
#include "tuned/selection.h"

namespace tuned {

// Throws std::runtime_error with CUDA's message.
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// The device that is current.
inline Device current_device() {
  int ordinal = 0;
  check(cudaGetDevice(&ordinal), "cudaGetDevice");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  const auto get = [&](cudaDeviceAttr attribute) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, attribute, ordinal), "cudaDeviceGetAttribute");
    return static_cast<std::int64_t>(value);
  };
  Device device;
  device.name = properties.name;
  device.capability = 10 * properties.major + properties.minor;
  Limits& limits = device.limits;
  limits.grid_x = get(cudaDevAttrMaxGridDimX);
  limits.grid_y = get(cudaDevAttrMaxGridDimY);
  limits.grid_z = get(cudaDevAttrMaxGridDimZ);
  limits.threads_per_block = get(cudaDevAttrMaxThreadsPerBlock);
  limits.shared_bytes_per_block = get(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  limits.constant_bytes = get(cudaDevAttrTotalConstantMemory);
  limits.texture_1d_texels = get(cudaDevAttrMaxTexture1DLinearWidth);
  limits.texture_2d_width = get(cudaDevAttrMaxTexture2DWidth);
  limits.texture_2d_height = get(cudaDevAttrMaxTexture2DHeight);
  limits.texture_pitched_width = get(cudaDevAttrMaxTexture2DLinearWidth);
  limits.texture_pitched_height = get(cudaDevAttrMaxTexture2DLinearHeight);
  limits.texture_3d_side = std::min(
      {get(cudaDevAttrMaxTexture3DWidth), get(cudaDevAttrMaxTexture3DHeight), get(cudaDevAttrMaxTexture3DDepth)});
  limits.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  return device;
}

// A stored array, or the one buffer of a group.
class DeviceArray {
 public:
  DeviceArray(const Layout& layout, const Room& room) : DeviceArray(layout, room, Empty{}) {
    const auto width_bytes = static_cast<std::size_t>(room.width * layout.texel_bytes);
    if (layout.is_image() && layout.dims == Dims::image) {
      const cudaChannelFormatDesc texel = format();
      check(cudaMalloc3DArray(&plane_, &texel, extent(), layout.is_surface ? cudaArraySurfaceLoadStore : 0),
            layout.name);
      if (layout.is_surface) check(cudaMalloc(&data_, static_cast<std::size_t>(room.bytes)), layout.name);
    } else if (!is_texture_plane()) {
      check(cudaMalloc(&data_, static_cast<std::size_t>(std::max<std::int64_t>(room.bytes, 16))), layout.name);
    } else if (layout.dims == Dims::pitched_plane || layout.dims == Dims::pitched_image) {
      check(cudaMallocPitch(&data_, &pitch_, width_bytes, room.height), layout.name);
    } else {
      const cudaChannelFormatDesc texel = format();
      check(cudaMallocArray(&plane_, &texel, room.width, room.height), layout.name);
    }
    if (layout.is_surface)
      make_surface();
    else if (layout.memory == Memory::texture)
      make_texture();
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    if (texture_) cudaDestroyTextureObject(texture_);
    if (surface_) cudaDestroySurfaceObject(surface_);
    if (plane_) cudaFreeArray(plane_);
    cudaFree(data_);
  }

  void* data() const { return data_; }
  std::int64_t bytes() const { return room_.bytes; }
  unsigned long long handle() const {
    if (layout_.is_surface) return surface_;
    return layout_.memory == Memory::texture ? texture_ : reinterpret_cast<unsigned long long>(data_);
  }

  // The content lies in pageable memory: the call returns when it has been read.
  void upload(const Bytes& content, cudaStream_t stream) {
    const auto width_bytes = static_cast<std::size_t>(room_.width * layout_.texel_bytes);
    if (is_array_image())
      copy_image(const_cast<unsigned char*>(content.data()), cudaMemcpyHostToDevice, stream);
    else if (!is_texture_plane())
      check(cudaMemcpyAsync(data_, content.data(), content.size(), cudaMemcpyHostToDevice, stream), layout_.name);
    else if (plane_)
      check(cudaMemcpy2DToArrayAsync(plane_, 0, 0, content.data(), width_bytes, width_bytes, room_.height,
                                     cudaMemcpyHostToDevice, stream),
            layout_.name);
    else
      check(cudaMemcpy2DAsync(data_, pitch_, content.data(), width_bytes, width_bytes, room_.height,
                              cudaMemcpyHostToDevice, stream),
            layout_.name);
    check(cudaStreamSynchronize(stream), layout_.name);
  }

  Bytes download(cudaStream_t stream) const {
    Bytes content(room_.bytes);
    if (is_array_image())
      copy_image(content.data(), cudaMemcpyDeviceToHost, stream);
    else
      check(cudaMemcpyAsync(content.data(), data_, content.size(), cudaMemcpyDeviceToHost, stream), layout_.name);
    check(cudaStreamSynchronize(stream), layout_.name);
    return content;
  }

  // Zeros, behind what the stream has.
  void clear(cudaStream_t stream) {
    check(cudaMemsetAsync(data_, 0, static_cast<std::size_t>(room_.bytes), stream), layout_.name);
    if (is_array_image()) copy_image(data_, cudaMemcpyDeviceToDevice, stream);
  }

 private:
  // Behind this constructor the object stands, and its destructor frees what the other one got when that fails.
  struct Empty {};
  DeviceArray(const Layout& layout, const Room& room, Empty) : layout_(layout), room_(room) {}

  bool is_texture_plane() const { return layout_.memory == Memory::texture && layout_.dims != Dims::line; }

  bool is_array_image() const { return layout_.dims == Dims::image; }
  cudaExtent extent() const {
    return make_cudaExtent(static_cast<std::size_t>(room_.width), static_cast<std::size_t>(room_.height),
                           static_cast<std::size_t>(room_.depth));
  }

  // All rows between the image and `linear`, where they follow each other: from the image to the host, else to it.
  void copy_image(void* linear, cudaMemcpyKind kind, cudaStream_t stream) const {
    cudaMemcpy3DParms copy = {};
    const cudaPitchedPtr rows =
        make_cudaPitchedPtr(linear, static_cast<std::size_t>(room_.width * layout_.texel_bytes),
                            static_cast<std::size_t>(room_.width), static_cast<std::size_t>(room_.height));
    if (kind == cudaMemcpyDeviceToHost) {
      copy.srcArray = plane_;
      copy.dstPtr = rows;
    } else {
      copy.srcPtr = rows;
      copy.dstArray = plane_;
    }
    copy.extent = extent();
    if (copy.extent.depth == 0) copy.extent.depth = 1;
    copy.kind = kind;
    check(cudaMemcpy3DAsync(&copy, stream), layout_.name);
  }

  // Texels of 1, 2, 4, 8 or 16 bytes, and numbers where hardware works with them.
  cudaChannelFormatDesc format() const {
    if (layout_.texel != Texel::bits) {
      const cudaChannelFormatKind kind = layout_.texel == Texel::real      ? cudaChannelFormatKindFloat
                                         : layout_.texel == Texel::integer ? cudaChannelFormatKindSigned
                                                                           : cudaChannelFormatKindUnsigned;
      return cudaCreateChannelDesc(8 * layout_.texel_bytes, 0, 0, 0, kind);
    }
    const int bits = 8 * std::min(layout_.texel_bytes, 4), channels = std::max(layout_.texel_bytes / 4, 1);
    return cudaCreateChannelDesc(bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0,
                                 cudaChannelFormatKindUnsigned);
  }

  void make_texture() {
    cudaResourceDesc resource = {};
    if (layout_.dims == Dims::line) {
      resource.resType = cudaResourceTypeLinear;
      resource.res.linear.devPtr = data_;
      resource.res.linear.desc = format();
      resource.res.linear.sizeInBytes = static_cast<std::size_t>(room_.bytes);
    } else if (plane_) {
      resource.resType = cudaResourceTypeArray;
      resource.res.array.array = plane_;
    } else {
      resource.resType = cudaResourceTypePitch2D;
      resource.res.pitch2D.devPtr = data_;
      resource.res.pitch2D.desc = format();
      resource.res.pitch2D.width = static_cast<std::size_t>(room_.width);
      resource.res.pitch2D.height = static_cast<std::size_t>(room_.height);
      resource.res.pitch2D.pitchInBytes = pitch_;
    }
    cudaTextureDesc texture = {};
    constexpr cudaTextureAddressMode modes[] = {cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeWrap,
                                                cudaAddressModeBorder};
    texture.readMode = layout_.is_normalised ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    texture.filterMode = layout_.is_linear ? cudaFilterModeLinear : cudaFilterModePoint;
    texture.normalizedCoords = layout_.edge == Edge::mirror || layout_.edge == Edge::wrap;
    for (auto& mode : texture.addressMode) mode = modes[static_cast<int>(layout_.edge)];
    check(cudaCreateTextureObject(&texture_, &resource, &texture, nullptr), layout_.name);
  }

  void make_surface() {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = plane_;
    check(cudaCreateSurfaceObject(&surface_, &resource), layout_.name);
  }

  Layout layout_;
  Room room_;
  void* data_ = nullptr;
  std::size_t pitch_ = 0;
  cudaArray_t plane_ = nullptr;
  cudaTextureObject_t texture_ = 0;
  cudaSurfaceObject_t surface_ = 0;
};

// The Array of an accessor: that of the codes where it converts (autotune::Narrow), else itself.
template <class Accessor>
auto array_of(Accessor& made, int) -> decltype((made.codes)) {
  return made.codes;
}
template <class Accessor>
Accessor& array_of(Accessor& made, long) {
  return made;
}

// What an accessor is given of a room; constants, and what it has no member for, are left out.
template <class PerAxis>
void give(PerAxis& to, const std::vector<std::int64_t>& numbers) {
  for (std::size_t axis = 0; axis < numbers.size(); ++axis)
    to.give(static_cast<int>(axis), static_cast<typename PerAxis::number_type>(numbers[axis]));
}
template <class Array>
auto give_strides(Array& made, const Room& room, int) -> decltype((void)made.strides()) {
  give(made.strides(), room.strides);
  give(made.runs(), {room.part_stride});
}
template <class Image>
void give_strides(Image&, const Room&, long) {}

// The kernel's view of an array (autotune::Array), by its handle, extents and strides.
template <class Accessor>
Accessor accessor(const Room& room, unsigned long long handle) {
  Accessor whole{};
  auto& made = array_of(whole, 0);
  static_assert(sizeof made.memory == sizeof handle, "a memory is one handle");
  std::memcpy(&made.memory, &handle, sizeof handle);
  give(made.extents(), room.extents);
  give_strides(made, room, 0);
  return whole;
}

}  // namespace tuned

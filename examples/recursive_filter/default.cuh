// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr int block_size = 128;
  static constexpr int unroll = 1;
  using image = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using down = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using down_for_rows = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using across = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using across_for_points = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using sharp = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void smooth_columns<Default>(Default::image, Default::down, float, unsigned int);
template __global__ void smooth_rows<Default>(Default::down_for_rows, Default::across, float, unsigned int);
template __global__ void sharpen<Default>(Default::image, Default::across_for_points, Default::sharp, float, unsigned int);

// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once
#include "autotune/image.cuh"

struct Default {
  static constexpr ImageStaging image_staging = ImageStaging::none;
  static constexpr RangeStaging range_staging = RangeStaging::none;
  static constexpr int block_x = 32;
  static constexpr int block_y = 8;
  static constexpr int radius = 4;
  using image = autotune::Image<autotune::Array<unsigned char, autotune::Global<const autotune::Texel<1>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>, 2, autotune::Edge::clamp, autotune::Elements, autotune::Nearest>;
  using space = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<9, 9>, autotune::Strides<unsigned, 9, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using range = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<256>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using smooth = autotune::Array<unsigned char, autotune::Global<autotune::Texel<1>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void bilateral<Default>(Default::image, Default::space, Default::range, Default::smooth);

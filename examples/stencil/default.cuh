// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr int march = 1;
  static constexpr int block_x = 32;
  static constexpr int block_y = 8;
  using field = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using result = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void stencil<Default>(Default::field, Default::result, float, float);

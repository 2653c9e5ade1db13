// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr int block_size = 128;
  using items = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using weights = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using scores = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void weighted_sum<Default>(Default::items, Default::weights, Default::scores);

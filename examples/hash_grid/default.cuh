// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Work work = Work::point;
  static constexpr int block_size = 256;
  using points = autotune::Array<Point, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using table = autotune::Array<Feature, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using scale = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using resolution = autotune::Array<unsigned int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using encoding = autotune::Array<Feature, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void hash_grid<Default>(Default::points, Default::table, Default::scale, Default::resolution, Default::encoding);

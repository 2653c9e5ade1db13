// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Walk walk = Walk::bisect;
  static constexpr int node_width = 1;
  static constexpr int block_size = 256;
  using keys = autotune::Array<autotune::Packed<autotune::Bits<32>, 1>, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using values = autotune::Array<unsigned int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using children = autotune::Array<Children, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using root = autotune::Array<unsigned int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<1>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using queries = autotune::Array<unsigned int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using found = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void lookup<Default>(Default::keys, Default::values, Default::children, Default::root, Default::queries, Default::found);

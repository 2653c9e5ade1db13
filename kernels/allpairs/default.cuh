// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Accumulate accumulate = Accumulate::global_atomic;
  static constexpr int block_size = 128;
  static constexpr int tile = 1;
  static constexpr Pairs pairs = Pairs::all;
  static constexpr Missing missing = Missing::category;
  using genotypes = autotune::Array<autotune::Packed<autotune::Bits<32>, 1>, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 1, 0>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using distance = autotune::Array<int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void allpairs<Default>(Default::genotypes, Default::distance);

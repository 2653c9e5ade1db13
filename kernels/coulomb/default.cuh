// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr int points_x = 1;
  static constexpr int points_z = 1;
  static constexpr Points points = Points::strided;
  static constexpr Precalculate precalculate = Precalculate::none;
  static constexpr int block_x = 16;
  static constexpr int block_y = 16;
  static constexpr Staging staging = Staging::none;
  static constexpr Rsqrt rsqrt = Rsqrt::ieee;
  static constexpr int slices_per_launch = 1;
  static constexpr Accumulate accumulate = Accumulate::read_first;
  static constexpr Edges edges = Edges::guarded;
  static constexpr int unroll = 1;
  static constexpr Precision precision = Precision::float32;
  using atoms = autotune::Array<Atom, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using dz2 = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using potential = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void precalculate<Default>(Default::atoms, Default::dz2, float, unsigned int, unsigned int, unsigned int);
template __global__ void coulomb<Default>(Default::atoms, Default::dz2, Default::potential, float, unsigned int, unsigned int, unsigned int, unsigned int);

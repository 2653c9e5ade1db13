// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Update update = Update::eager;
  static constexpr Launch launch = Launch::each;
  static constexpr int tile = 8;
  static constexpr int near = 4;
  static constexpr int lazy_blocks = 132;
  static constexpr int block_size = 256;
  using potential = autotune::Array<double, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using charges = autotune::Array<double, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using map = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using parts = autotune::Array<Part, autotune::Global<autotune::Texel<16>>, autotune::Strided<autotune::Extents<4, 1056>, autotune::Strides<unsigned, 1056, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using ions = autotune::Array<Ion, autotune::Global<autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using tiles = autotune::Array<Tile, autotune::Global<autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using updates = autotune::Array<unsigned long long, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<1>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using barrier = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<1>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using places = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void copy<Default>(Default::potential, Default::map);
template __global__ void search<Default>(Default::map, Default::charges, Default::parts, Default::places, double, double, unsigned int);
template __global__ void update<Default>(Default::map, Default::charges, Default::parts, Default::places, double, double, unsigned int);
template __global__ void advance<Default>(Default::map, Default::charges, Default::parts, Default::places, double, double, unsigned int);
template __global__ void finish<Default>(Default::parts, Default::places, unsigned int, unsigned int);
template __global__ void place<Default>(Default::potential, Default::map, Default::charges, Default::parts, Default::places, Default::ions, Default::tiles, Default::updates, double, double, unsigned int);
template __global__ void place_all<Default>(Default::potential, Default::map, Default::charges, Default::parts, Default::places, Default::ions, Default::tiles, Default::updates, double, double, Default::barrier);

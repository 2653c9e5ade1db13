// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Method method = Method::direct;
  static constexpr int cell = 12;
  static constexpr int order = 14;
  static constexpr int separation = 24;
  static constexpr int tile = 256;
  static constexpr int expand_blocks = 2;
  static constexpr int point_blocks = 3;
  static constexpr Bounds bounds = Bounds::largest;
  using atoms = autotune::Array<Atom, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using sorted = autotune::Array<Atom, autotune::Global<autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using expansions = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 306>, autotune::Strides<unsigned, 306, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using amounts = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 2>, autotune::Strides<unsigned, 2, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using potential = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using bound = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0, 0>, autotune::Strides<unsigned, 0, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void find_box<Default>(Default::atoms, unsigned int*);
template __global__ void lay_grid<Default>(unsigned int*, double*, unsigned int);
template __global__ void count_atoms<Default>(Default::atoms, double*, unsigned int*, unsigned int*, unsigned int);
template __global__ void begin_cells<Default>(unsigned int*, unsigned int);
template __global__ void sort_atoms<Default>(Default::atoms, double*, unsigned int*, unsigned int*, Default::sorted, unsigned int);
template __global__ void expand<Default>(Default::sorted, unsigned int*, double*, Default::expansions, Default::amounts, unsigned int, unsigned int, unsigned int, float, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int);
template __global__ void shift<Default>(Default::expansions, Default::amounts, unsigned int, unsigned int, unsigned int, float, unsigned int, unsigned int, unsigned int);
template __global__ void sum_points<Default>(Default::atoms, Default::sorted, unsigned int*, double*, Default::expansions, Default::amounts, Default::potential, Default::bound, float*, unsigned int, unsigned int, unsigned int, float, double, unsigned int);

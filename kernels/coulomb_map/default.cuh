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
  struct expand_arguments {
    Default::sorted sorted;
    unsigned int* starts;
    double* grid_axes;
    Default::expansions expansions;
    Default::amounts amounts;
    unsigned int nx;
    unsigned int ny;
    unsigned int nz;
    float spacing;
    unsigned int side;
    unsigned int level;
    unsigned int levels;
    unsigned int first_cell;
    unsigned int parts;
  };
  struct sum_arguments {
    Default::atoms atoms;
    Default::sorted sorted;
    unsigned int* starts;
    double* grid_axes;
    Default::expansions expansions;
    Default::amounts amounts;
    Default::potential potential;
    Default::bound bound;
    float* share;
    unsigned int nx;
    unsigned int ny;
    unsigned int nz;
    float spacing;
    double accuracy;
    unsigned int side;
  };
};
template __global__ void find_box<Default>(Default::atoms, unsigned int*);
template __global__ void lay_grid<Default>(unsigned int*, double*, unsigned int);
template __global__ void count_atoms<Default>(Default::atoms, double*, unsigned int*, unsigned int*, unsigned int);
template __global__ void begin_cells<Default>(unsigned int*, unsigned int);
template __global__ void sort_atoms<Default>(Default::atoms, double*, unsigned int*, unsigned int*, Default::sorted, unsigned int);
template __global__ void expand<Default>(Default::expand_arguments);
template __global__ void shift<Default>(Default::expansions, Default::amounts, unsigned int, unsigned int, unsigned int, float, unsigned int, unsigned int, unsigned int);
template __global__ void sum_points<Default>(Default::sum_arguments);

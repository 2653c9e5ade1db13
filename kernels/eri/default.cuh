// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Expansion expansion = Expansion::index;
  static constexpr Granularity granularity = Granularity::thread;
  static constexpr PairTable pair_table = PairTable::none;
  static constexpr Boys boys = Boys::erf;
  static constexpr Roots roots = Roots::computed;
  static constexpr Screening screening = Screening::none;
  static constexpr int block_size = 128;
  static constexpr int split = 1;
  static constexpr int unroll = 1;
  static constexpr int bras = 8;
  static constexpr Output output = Output::integrals;
  static constexpr Accuracy accuracy = Accuracy::float64;
  using shells = autotune::Array<Shell, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using primitives = autotune::Array<Primitive, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using pairs = autotune::Array<Pair, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using host_table = autotune::Array<PrimitivePair, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using device_table = autotune::Array<PrimitivePair, autotune::Global<autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using quotient = autotune::Array<double, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using runs = autotune::Array<PairRun, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using unit_list = autotune::Array<WorkUnit, autotune::Global<autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using component_list = autotune::Array<Component, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using density = autotune::Array<double, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using integrals = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using coulomb = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using exchange = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using coulomb_sum = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using exchange_sum = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  struct arguments {
    Default::shells shells;
    Default::primitives primitives;
    Default::pairs pairs;
    Default::host_table host_table;
    Default::device_table device_table;
    Default::quotient quotient;
    Default::runs runs;
    Default::unit_list unit_list;
    Default::component_list component_list;
    Default::density density;
    Default::integrals integrals;
    Default::coulomb coulomb;
    Default::exchange exchange;
    Default::coulomb_sum coulomb_sum;
    Default::exchange_sum exchange_sum;
    double threshold;
    unsigned long long units;
    unsigned int each;
    unsigned int first_unit;
    unsigned int first_bra;
    unsigned int first_ket;
    unsigned int kets;
    unsigned int parts;
    unsigned int share;
  };
};
template __global__ void tabulate_pairs<Default>(Default::shells, Default::primitives, Default::pairs, Default::device_table);
template __global__ void integrate<Default>(Default::arguments);
template __global__ void symmetrise<Default>(Default::coulomb_sum, Default::exchange_sum, Default::coulomb, Default::exchange);

// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Classes classes = Classes::together;
  static constexpr Granularity granularity = Granularity::thread;
  static constexpr int parts = 1;
  static constexpr int split = 1;
  static constexpr int split_heavy = 1;
  static constexpr BraTransform bra_transform = BraTransform::each;
  static constexpr PairTable pair_table = PairTable::none;
  static constexpr Boys boys = Boys::erf;
  static constexpr Screening screening = Screening::none;
  static constexpr int block_size = 128;
  static constexpr Output output = Output::integrals;
  using shells = autotune::Array<Shell, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using primitives = autotune::Array<Primitive, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using pairs = autotune::Array<Pair, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using table = autotune::Array<PrimitivePair, autotune::Global<autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using boys_table = autotune::Array<BoysRow, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<5, 160>, autotune::Strides<unsigned, 160, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
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
    Default::table table;
    Default::boys_table boys_table;
    Default::density density;
    Default::integrals integrals;
    Default::coulomb_sum coulomb_sum;
    Default::exchange_sum exchange_sum;
    unsigned long long units;
    unsigned int first_row;
    unsigned int first_column;
    unsigned int columns;
    double threshold;
  };
};
template __global__ void tabulate<Default>(Default::shells, Default::primitives, Default::pairs, Default::table, Default::integrals, Default::coulomb, Default::exchange);
template __global__ void integrate_ssss<Default>(Default::arguments);
template __global__ void integrate_spss<Default>(Default::arguments);
template __global__ void integrate_spsp<Default>(Default::arguments);
template __global__ void integrate_ppss<Default>(Default::arguments);
template __global__ void integrate_ppsp<Default>(Default::arguments);
template __global__ void integrate_pppp<Default>(Default::arguments);
template __global__ void integrate_any<Default>(Default::arguments);
template __global__ void symmetrise<Default>(Default::coulomb_sum, Default::exchange_sum, Default::coulomb, Default::exchange);

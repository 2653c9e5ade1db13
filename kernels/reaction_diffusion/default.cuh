// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr FieldMemory field_memory = FieldMemory::global;
  static constexpr Coefficient coefficient = Coefficient::stored;
  static constexpr Boundary boundary = Boundary::mask;
  static constexpr int time_block = 1;
  static constexpr Launch launch = Launch::graph;
  static constexpr int vector_width = 1;
  static constexpr int strip = 1;
  static constexpr int block_size = 256;
  static constexpr int min_blocks = 1;
  static constexpr int block_rows = 1024;
  static constexpr Precision precision = Precision::float32;
  static constexpr Walls walls = Walls::outline;
  static constexpr BeamShape beam_shape = BeamShape::any;
  using initial = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using beam = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using beam_columns = autotune::Array<float, autotune::ReadOnly<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using beam_rows = autotune::Array<float, autotune::ReadOnly<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using open_sides = autotune::Array<unsigned char, autotune::Global<const autotune::Texel<1>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using detector = autotune::Array<unsigned char, autotune::Global<const autotune::Texel<1>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using field_even = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using field_odd = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using even_view = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using odd_view = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using own = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using sums = autotune::Array<unsigned long long, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using watched = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<4>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using peak = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<1>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using cycle = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<1>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using barrier = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<1>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using shown = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using concentration = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using fluorescence = autotune::Array<double, autotune::Global<autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  struct prepare_arguments {
    Default::initial initial;
    Default::beam beam;
    Default::beam_columns beam_columns;
    Default::beam_rows beam_rows;
    Default::detector detector;
    Default::peak peak;
    Default::field_even field_even;
    Default::own own;
    Default::sums sums;
    Default::watched watched;
    double diffusion;
    double bleaching;
  };
};
template __global__ void survey<Default>(Default::initial, Default::peak);
template __global__ void prepare<Default>(Default::prepare_arguments);
template __global__ void advance<Default>(Default::field_even, Default::field_odd, Default::even_view, Default::odd_view, Default::own, Default::beam_columns, Default::beam_rows, Default::open_sides, Default::detector, Default::watched, Default::peak, Default::sums, Default::cycle, Default::barrier, Default::shown, double, double, float, float, float, unsigned int, unsigned int, unsigned int, unsigned int);
template __global__ void end_cycle<Default>(Default::cycle, unsigned int);
template __global__ void finish<Default>(Default::field_even, Default::field_odd, Default::sums, Default::peak, Default::concentration, Default::fluorescence, unsigned int);

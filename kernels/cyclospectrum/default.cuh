// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Generation generation = Generation::brute;
  static constexpr Wrap wrap = Wrap::conditional;
  static constexpr int outputs_per_thread = 1;
  static constexpr int block_size = 256;
  static constexpr Finish finish = Finish::host_sort;
  static constexpr CountBy count_by = CountBy::differences;
  static constexpr PrimeSize prime_size = PrimeSize::wide;
  static constexpr int row_bits = 13;
  static constexpr int window = 16384;
  static constexpr Scan scan = Scan::passes;
  static constexpr Launch launch = Launch::stream;
  static constexpr Find find = Find::search;
  static constexpr Eviction eviction = Eviction::normal;
  static constexpr int tally_blocks = 528;
  static constexpr Order order = Order::sorted;
  static constexpr Output output = Output::list;
  using residues = autotune::Array<int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using spectrum = autotune::Array<autotune::Packed<autotune::Bits<32>, 1>, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using spare = autotune::Array<autotune::Packed<autotune::Bits<32>, 1>, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using ring = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using counts = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using field = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using roots = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<8960>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using sums = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using ends = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using starts = autotune::Array<unsigned int, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using workspace = autotune::Array<unsigned char, autotune::Global<autotune::Texel<1>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void arrange<Default>(Default::residues, Default::ring);
template __global__ void sequential<Default>(Default::residues, Default::ring, Default::spectrum, Default::spare, unsigned int, unsigned int);
template __global__ void brute<Default>(Default::residues, Default::ring, Default::spectrum, Default::spare, unsigned int, unsigned int);
template __global__ void iterated<Default>(Default::residues, Default::ring, Default::spectrum, Default::spare, unsigned int, unsigned int, unsigned int);
template __global__ void differences<Default>(Default::residues, Default::ring, Default::spectrum, Default::spare, unsigned int, unsigned int);
template __global__ void tally<Default>(Default::ring, Default::counts);
template __global__ void empty_field<Default>(Default::field, Default::roots, Default::sums, unsigned int);
template __global__ void mark<Default>(Default::residues, Default::field, unsigned int);
template __global__ void columns_forward<Default>(Default::field, Default::roots, unsigned int, unsigned int, unsigned int);
template __global__ void square_rows<Default>(Default::field, Default::roots, unsigned int, unsigned int, unsigned int);
template __global__ void columns_back<Default>(Default::field, Default::roots, unsigned int, unsigned int, unsigned int);
template __global__ void tile_sums<Default>(Default::counts, Default::field, Default::ring, Default::sums, unsigned int);
template __global__ void scan_tiles<Default>(Default::sums, unsigned int);
template __global__ void offsets<Default>(Default::counts, Default::field, Default::ring, Default::sums, Default::ends, Default::starts, unsigned int);
template __global__ void look_back<Default>(Default::counts, Default::field, Default::ring, Default::sums, Default::ends, Default::starts, unsigned int);
template __global__ void list_tiles<Default>(Default::counts, Default::field, Default::ring, Default::sums, Default::spectrum, unsigned int);
template __global__ void pair_up<Default>(Default::counts, Default::field, Default::ring, Default::sums, Default::spectrum, unsigned int);
template __global__ void expand<Default>(Default::ends, Default::starts, Default::spectrum);

// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Format format = Format::csr;
  static constexpr int threads_per_row = 1;
  static constexpr int block_size = 256;
  using csr_offsets = autotune::Array<unsigned int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using csr_entries = autotune::Array<Entry, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Soa, autotune::Merged<1, 0>>;
  using ell_entries = autotune::Array<Entry, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 1, 0>>, autotune::Dims1D, autotune::Soa, autotune::Merged<1, 0>>;
  using sell_offsets = autotune::Array<unsigned int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using sell_entries = autotune::Array<Entry, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Soa, autotune::Merged<1, 0>>;
  using x = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using y = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void spmv<Default>(Default::csr_offsets, Default::csr_entries, Default::ell_entries, Default::sell_offsets, Default::sell_entries, Default::x, Default::y);

// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Form form = Form::whole;
  static constexpr Order order = Order::depth_first;
  static constexpr Staging staging = Staging::none;
  static constexpr Sums sums = Sums::shared;
  static constexpr int rows_per_thread = 1;
  static constexpr int trees_at_once = 1;
  static constexpr int threads_per_row = 1;
  static constexpr int tree_slices = 1;
  static constexpr int block_size = 256;
  using nodes = autotune::Array<Node, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using aligned_nodes = autotune::Array<AlignedNode, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using hot_nodes = autotune::Array<HotNode, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using cold_nodes = autotune::Array<ColdNode, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using compact_depth_first = autotune::Array<CompactNode, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using compact_hot_first = autotune::Array<CompactNode, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using compact_breadth_first = autotune::Array<CompactNode, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using compact_van_emde_boas = autotune::Array<CompactNode, autotune::Global<const autotune::Texel<8>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using roots = autotune::Array<unsigned int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using leaf_values = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using base = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using rows = autotune::Array<float, autotune::Global<const autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using result = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void forest<Default>(Default::nodes, Default::aligned_nodes, Default::hot_nodes, Default::cold_nodes, Default::compact_depth_first, Default::compact_hot_first, Default::compact_breadth_first, Default::compact_van_emde_boas, Default::roots, Default::leaf_values, Default::base, Default::rows, Default::result);

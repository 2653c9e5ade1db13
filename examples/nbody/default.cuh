// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling
// the kernel source on its own.
// clang-format off
#pragma once

struct Default {
  static constexpr Staging staging = Staging::none;
  static constexpr int bodies_per_thread = 1;
  static constexpr int threads_per_body = 1;
  static constexpr int unroll = 1;
  static constexpr int block_size = 256;
  using bodies = autotune::Array<Body, autotune::Global<const autotune::Texel<16>>, autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using acceleration = autotune::Array<float, autotune::Global<autotune::Texel<4>>, autotune::Strided<autotune::Extents<0, 3>, autotune::Strides<unsigned, 3, 1>>, autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
template __global__ void nbody<Default>(Default::bodies, Default::acceleration, float);

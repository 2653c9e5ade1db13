// An array of a program copied into another layout, between two kernels that want it so and so.
#include "autotune/array.cuh"
#include "autotune/convert.cuh"

template <class Policy>
__global__ void __launch_bounds__(autotune::conversion_threads)
    convert_form(typename Policy::from_type from, typename Policy::to_type to) {
  autotune::convert<typename Policy::shape>(from, to);
}

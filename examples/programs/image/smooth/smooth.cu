// A first order recursive filter along each line of an image, forwards and backwards. A thread has a line: it walks
// along that and its neighbours walk beside it.
#include "autotune/array.cuh"

constexpr unsigned threads = 64;  // of a block, as in family.yaml

enum class Direction { down, across };

// One sweep along a line of `count` values, from(i) to to(s, i), UNROLL of them under way at a time.
template <int UNROLL, class From, class To>
AUTOTUNE_DEVICE void sweep(unsigned count, float share, bool is_backward, From from, To to) {
  float state = from(is_backward ? count - 1 : 0);
  for (unsigned first = 0; first < count; first += UNROLL) {
    float value[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
      if (first + u < count) value[u] = from(is_backward ? count - 1 - first - u : first + u);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
      if (first + u < count) {
        state += share * (value[u] - state);
        to(state, is_backward ? count - 1 - first - u : first + u);
      }
  }
}

template <class Policy>
__global__ void __launch_bounds__(threads)
    smooth_lines(typename Policy::source source, typename Policy::smoothed smoothed, float smooth) {
  constexpr bool is_down = Policy::direction == Direction::down;
  const unsigned length = source.extent(is_down ? 1 : 2), lines = source.extent(is_down ? 2 : 1);
  const unsigned thread = blockIdx.x * threads + threadIdx.x, frame = thread / lines, line = thread % lines;
  if (frame >= source.extent(0)) return;
  const auto given = [&](unsigned i) { return is_down ? source.load(frame, i, line) : source.load(frame, line, i); };
  const auto own = [&](unsigned i) { return is_down ? smoothed.load(frame, i, line) : smoothed.load(frame, line, i); };
  const auto keep = [&](float value, unsigned i) {
    is_down ? smoothed.store(value, frame, i, line) : smoothed.store(value, frame, line, i);
  };
  sweep<Policy::unroll>(length, smooth, false, given, keep);
  sweep<Policy::unroll>(length, smooth, true, own, keep);
}

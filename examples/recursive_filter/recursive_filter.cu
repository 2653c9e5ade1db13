// An image smoothed along its columns, then along its rows, by a first order recursive filter, and sharpened by the
// difference from that, averaged in a window. A thread has a line: it walks along that and its neighbours walk beside
// it.
#include "autotune/array.cuh"

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

// Forwards and backwards, `passes` times; all but the first sweep are in place.
template <int UNROLL, class From, class Own, class To>
AUTOTUNE_DEVICE void smooth_line(unsigned count, float share, unsigned passes, From from, Own own, To to) {
  sweep<UNROLL>(count, share, false, from, to);
  sweep<UNROLL>(count, share, true, own, to);
  for (unsigned pass = 1; pass < passes; ++pass) {
    sweep<UNROLL>(count, share, false, own, to);
    sweep<UNROLL>(count, share, true, own, to);
  }
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    smooth_columns(typename Policy::image image, typename Policy::down down, float smooth, unsigned passes) {
  const unsigned line = blockIdx.x * Policy::block_size + threadIdx.x, columns = image.extent(2);
  if (line >= image.extent(0) * columns) return;
  const unsigned frame = line / columns, column = line % columns;
  smooth_line<Policy::unroll>(
      image.extent(1), smooth, passes, [&](unsigned i) { return image.load(frame, i, column); },
      [&](unsigned i) { return down.load(frame, i, column); },
      [&](float value, unsigned i) { down.store(value, frame, i, column); });
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    smooth_rows(typename Policy::down_for_rows down, typename Policy::across across, float smooth, unsigned passes) {
  const unsigned line = blockIdx.x * Policy::block_size + threadIdx.x, rows = down.extent(1);
  if (line >= down.extent(0) * rows) return;
  const unsigned frame = line / rows, row = line % rows;
  smooth_line<Policy::unroll>(
      down.extent(2), smooth, passes, [&](unsigned i) { return down.load(frame, row, i); },
      [&](unsigned i) { return across.load(frame, row, i); },
      [&](float value, unsigned i) { across.store(value, frame, row, i); });
}

template <class Policy>
__global__ void __launch_bounds__(256) sharpen(typename Policy::image image, typename Policy::across_for_points smooth,
                                               typename Policy::sharp sharp, float amount, unsigned reach) {
  const unsigned column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y, frame = blockIdx.z;
  const int rows = image.extent(1), columns = image.extent(2), away = reach;
  if (static_cast<int>(column) >= columns || static_cast<int>(row) >= rows) return;
  float sum = 0;
  for (int down = -away; down <= away; ++down)
    for (int across = -away; across <= away; ++across)
      sum += smooth.load(frame, min(max(static_cast<int>(row) + down, 0), rows - 1),
                         min(max(static_cast<int>(column) + across, 0), columns - 1));
  const float point = image.load(frame, row, column), side = 2.0f * reach + 1;
  sharp.store(point + amount * (point - sum / (side * side)), frame, row, column);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

// A bilateral filter, with the image, its result and two tables of weights in any layout.
#include "autotune/array.cuh"
#include "autotune/shared.cuh"

enum class ImageStaging { none, tile };
enum class RangeStaging { none, shared };

// The pixels that the block reads, in shared memory: `left`, `top` is the first.
template <class Policy>
AUTOTUNE_DEVICE void stage_tile(typename Policy::image image, unsigned char* tile, int top, int left) {
  constexpr int columns = Policy::block_x + 2 * Policy::radius, rows = Policy::block_y + 2 * Policy::radius;
  for (int i = threadIdx.y; i < rows; i += Policy::block_y)
    for (int j = threadIdx.x; j < columns; j += Policy::block_x) tile[i * columns + j] = image.load(top + i, left + j);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_x* Policy::block_y)
    bilateral(typename Policy::image image, typename Policy::space space, typename Policy::range range,
              typename Policy::smooth smooth) {
  constexpr int radius = Policy::radius, columns = Policy::block_x + 2 * radius;
  constexpr bool has_tile = Policy::image_staging == ImageStaging::tile;
  constexpr bool has_table = Policy::range_staging == RangeStaging::shared;
  const int height = image.extent(0), width = image.extent(1);
  const int x = blockIdx.x * Policy::block_x + threadIdx.x, y = blockIdx.y * Policy::block_y + threadIdx.y;
  float* table = autotune::dynamic_shared<float>();
  unsigned char* tile = autotune::dynamic_shared<unsigned char>() + (has_table ? 1024 : 0);
  if constexpr (has_tile)
    stage_tile<Policy>(image, tile, blockIdx.y * Policy::block_y - radius, blockIdx.x * Policy::block_x - radius);
  if constexpr (has_table)
    for (int level = threadIdx.y * Policy::block_x + threadIdx.x; level < 256;
         level += Policy::block_x * Policy::block_y)
      table[level] = range.load(level);
  if constexpr (has_tile || has_table) __syncthreads();
  if (x >= width || y >= height) return;
  const auto pixel_at = [&](int dy, int dx) -> int {
    if constexpr (has_tile)
      return tile[(threadIdx.y + radius + dy) * columns + threadIdx.x + radius + dx];
    else
      return image.load(y + dy, x + dx);
  };
  const auto likeness = [&](int apart) -> float {
    if constexpr (has_table)
      return table[apart];
    else
      return range.load(apart);
  };
  const int centre = pixel_at(0, 0);
  float weights = 0, sum = 0;
  for (int dy = -radius; dy <= radius; ++dy)
#pragma unroll
    for (int dx = -radius; dx <= radius; ++dx) {
      if (dx * dx + dy * dy > radius * radius) continue;
      const int pixel = pixel_at(dy, dx);
      const float weight = space.load(dy + radius, dx + radius) * likeness(abs(pixel - centre));
      weights += weight;
      sum += weight * pixel;
    }
  smooth.store(static_cast<unsigned char>(sum / weights + 0.5f), y, x);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

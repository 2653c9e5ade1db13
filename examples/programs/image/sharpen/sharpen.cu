// Unsharp masking with the mean of a window, outside of which lies the nearest point. A block has 32 x 8 points, the
// longer side along the columns or along the rows; neighbours in a warp are neighbours along either.
#include "autotune/array.cuh"

enum class Lanes { columns, rows };

template <class Policy>
__global__ void __launch_bounds__(256) sharpen(typename Policy::image image, typename Policy::smoothed smoothed,
                                               typename Policy::sharp sharp, float amount, unsigned reach) {
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  const bool is_along = Policy::lanes == Lanes::columns;
  const int column = blockIdx.x * blockDim.x + (is_along ? threadIdx.x : thread / blockDim.y);
  const int row = blockIdx.y * blockDim.y + (is_along ? threadIdx.y : thread % blockDim.y);
  const int rows = image.extent(1), columns = image.extent(2), away = reach;
  if (column >= columns || row >= rows) return;
  float sum = 0;
  for (int down = -away; down <= away; ++down)
    for (int across = -away; across <= away; ++across)
      sum += smoothed.load(blockIdx.z, min(max(row + down, 0), rows - 1), min(max(column + across, 0), columns - 1));
  const float point = image.load(blockIdx.z, row, column), side = 2.0f * reach + 1;
  sharp.store(point + amount * (point - sum / (side * side)), blockIdx.z, row, column);
}

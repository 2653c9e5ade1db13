// The three kernels as one writes them: every array by rows. What compare.py times beside the tuned plan.
extern "C" __global__ void smooth_columns(const float* image, float* down, int frames, int rows, int columns,
                                          float smooth, int passes) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= frames * columns) return;
  const long long first = 1ll * (line / columns) * rows * columns + line % columns;
  for (int pass = 0; pass < passes; ++pass) {
    const float* from = pass ? down : image;
    float state = from[first];
    for (int i = 0; i < rows; ++i) {
      state += smooth * (from[first + 1ll * i * columns] - state);
      down[first + 1ll * i * columns] = state;
    }
    state = down[first + (rows - 1ll) * columns];
    for (int i = rows - 1; i >= 0; --i) {
      state += smooth * (down[first + 1ll * i * columns] - state);
      down[first + 1ll * i * columns] = state;
    }
  }
}

extern "C" __global__ void smooth_rows(const float* down, float* across, int frames, int rows, int columns,
                                       float smooth, int passes) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= frames * rows) return;
  const long long first = 1ll * line * columns;
  for (int pass = 0; pass < passes; ++pass) {
    const float* from = pass ? across : down;
    float state = from[first];
    for (int i = 0; i < columns; ++i) {
      state += smooth * (from[first + i] - state);
      across[first + i] = state;
    }
    state = across[first + columns - 1];
    for (int i = columns - 1; i >= 0; --i) {
      state += smooth * (across[first + i] - state);
      across[first + i] = state;
    }
  }
}

extern "C" __global__ void sharpen(const float* image, const float* smooth, float* sharp, int rows, int columns,
                                   float amount, int reach) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= columns || row >= rows) return;
  const long long frame = 1ll * blockIdx.z * rows * columns, i = frame + 1ll * row * columns + column;
  float sum = 0;
  for (int down = -reach; down <= reach; ++down)
    for (int across = -reach; across <= reach; ++across) {
      const int y = min(max(row + down, 0), rows - 1), x = min(max(column + across, 0), columns - 1);
      sum += smooth[frame + 1ll * y * columns + x];
    }
  const float side = 2.0f * reach + 1;
  sharp[i] = image[i] + amount * (image[i] - sum / (side * side));
}

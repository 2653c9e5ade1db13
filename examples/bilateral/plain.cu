// A bilateral filter as one finds it: one thread a pixel, tables of weights in global memory.
#define RADIUS 4
#define SIDE (2 * RADIUS + 1)

extern "C" __global__ void bilateral(const unsigned char* image, const float* space, const float* range,
                                     unsigned char* smooth, int height, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int centre = image[y * width + x];
  float weights = 0, sum = 0;
  for (int dy = -RADIUS; dy <= RADIUS; ++dy)
#pragma unroll
    for (int dx = -RADIUS; dx <= RADIUS; ++dx) {
      if (dx * dx + dy * dy > RADIUS * RADIUS) continue;
      const int pixel = image[min(max(y + dy, 0), height - 1) * width + min(max(x + dx, 0), width - 1)];
      const float weight = space[(dy + RADIUS) * SIDE + dx + RADIUS] * range[abs(pixel - centre)];
      weights += weight;
      sum += weight * pixel;
    }
  smooth[y * width + x] = static_cast<unsigned char>(sum / weights + 0.5f);
}

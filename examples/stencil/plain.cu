// The kernel before it was tunable: a 7-point stencil on planes x rows x columns, zero outside.
// One thread a point, a block of 32 x 8 points of one plane.
extern "C" __global__ void stencil(const float* field, float* result, int planes, int rows, int columns, float centre,
                                   float side) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z;
  if (x >= columns || y >= rows) return;
  const long long plane = 1ll * rows * columns, i = z * plane + 1ll * y * columns + x;
  const float here = field[i];
  float sum = 0;
  if (z > 0) sum += field[i - plane];
  if (z + 1 < planes) sum += field[i + plane];
  if (y > 0) sum += field[i - columns];
  if (y + 1 < rows) sum += field[i + columns];
  if (x > 0) sum += field[i - 1];
  if (x + 1 < columns) sum += field[i + 1];
  result[i] = centre * here + side * sum;
}

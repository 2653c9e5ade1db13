// y = A x for a sparse A in CSR, as one would write it: a thread a row.
extern "C" __global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y,
                                int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int end = offsets[row + 1];
  float sum = 0;
  for (int k = offsets[row]; k < end; ++k) sum += values[k] * x[columns[k]];
  y[row] = sum;
}

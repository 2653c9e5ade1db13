// What bounds all-pairs distance besides its own work: bit products on the tensor cores alone, and stores of 1 GiB
// alone.
//
//     nvcc -O3 -arch=sm_90 -I kernels/include -I kernels/allpairs benchmarks/allpairs_limits.cu -o limits && ./limits
//
// Prints a CSV: the shortest of ten runs each, and what that is a second.
#include <cstdio>

#include "bit_product.cuh"

constexpr int blocks = 132 * 4, threads = 256, rounds = 4000, products = 8;
constexpr long bytes = 1l << 30;

__global__ void multiply(int* out) {
  BitSums sums[products] = {};
  const BitRows rows = {{threadIdx.x, 3}, {5, 7}};
  const BitColumns columns = {{threadIdx.x * 7, 11}};
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int k = 0; k < products; ++k) add_bit_product<1>(sums[k], rows, columns);
  int total = 0;
  for (int k = 0; k < products; ++k) total += sums[k].upper[0] + sums[k].lower[1];
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

__global__ void store(int4* out) {
  const long step = static_cast<long>(gridDim.x) * blockDim.x;
  for (long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x; i < bytes / 16; i += step)
    out[i] = make_int4(i, 1, 2, 3);
}

template <class Run>
float shortest(Run run) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  float best = 1e9f;
  for (int k = 0; k < 10; ++k) {
    float ms;
    cudaEventRecord(begin);
    run();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
    best = ms < best ? ms : best;
  }
  return best;
}

int main() {
  int* out;
  if (cudaMalloc(&out, bytes) != cudaSuccess) return 1;
  const float multiplied = shortest([&] { multiply<<<blocks, threads>>>(out); });
  const float stored = shortest([&] { store<<<132 * 16, 512>>>(reinterpret_cast<int4*>(out)); });
  const double bits = 16.0 * 8 * 256 * products * rounds * blocks * (threads / 32);
  std::printf("what,ms,per_second\nbits of products,%.4f,%.4g\nbytes stored,%.4f,%.4g\n", multiplied,
              bits / multiplied * 1e3, stored, bytes / stored * 1e3);
  return cudaGetLastError() != cudaSuccess;
}

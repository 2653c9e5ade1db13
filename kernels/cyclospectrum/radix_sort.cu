// CUB's device radix sort behind a C interface. nvcc makes a shared library of this file (radix_sort.py): the sort is
// host code that launches kernels of its own, so it cannot be a kernel of the family.
#include <cub/device/device_radix_sort.cuh>

// Sorts `count` keys by their lowest `bits` bits; they lie in `unsorted` and end up in `sorted`, both of which are
// overwritten. `workspace` has room for `workspace_bytes`. Returns a cudaError_t.
extern "C" int cyclospectrum_radix_sort(unsigned* unsorted, unsigned* sorted, unsigned* spare, void* workspace,
                                        unsigned long long workspace_bytes, int count, int bits, cudaStream_t stream) {
  cub::DoubleBuffer<unsigned> keys(unsorted, unsorted == sorted ? spare : sorted);
  size_t needed = 0;
  cudaError_t status = cub::DeviceRadixSort::SortKeys(nullptr, needed, keys, count, 0, bits, stream);
  if (status != cudaSuccess) return status;
  if (needed > workspace_bytes) return cudaErrorMemoryAllocation;
  status = cub::DeviceRadixSort::SortKeys(workspace, needed, keys, count, 0, bits, stream);
  if (status != cudaSuccess || keys.Current() == sorted) return status;
  const size_t bytes = static_cast<size_t>(count) * sizeof(unsigned);
  return cudaMemcpyAsync(sorted, keys.Current(), bytes, cudaMemcpyDeviceToDevice, stream);
}

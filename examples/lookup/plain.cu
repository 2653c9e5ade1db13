// The kernel before it was tunable: for every query the value of the first entry whose key is not smaller.
// keys ascend; a query past the last key finds `none`. One thread a query.
extern "C" __global__ void lookup(const unsigned* keys, const unsigned* values, unsigned entries,
                                  const unsigned* queries, unsigned* found, unsigned query_count) {
  const unsigned none = 0xFFFFFFFFu;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= query_count) return;
  const unsigned query = queries[i];
  unsigned first = 0, length = entries;
  while (length > 0) {
    const unsigned half = length / 2;
    if (keys[first + half] < query) {
      first += half + 1;
      length -= half + 1;
    } else {
      length = half;
    }
  }
  found[i] = first < entries ? values[first] : none;
}

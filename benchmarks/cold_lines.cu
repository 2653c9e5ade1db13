// Follows a chain of `steps` places through memory; each load waits for the one before, so the time of one is its
// latency.
template <class Policy>
__global__ void plain(const unsigned* places, unsigned* out, unsigned long long steps) {
  if (blockIdx.x * blockDim.x + threadIdx.x > 0) return;
  unsigned at = 0;
  for (unsigned long long i = 0; i < steps; ++i)
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(places + at));
  *out = at;
}

// The same, and asks the L2 cache to keep what it reads: after a plain flush its lines are there still.
template <class Policy>
__global__ void keeping(const unsigned* places, unsigned* out, unsigned long long steps) {
  if (blockIdx.x * blockDim.x + threadIdx.x > 0) return;
  unsigned long long last;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
  unsigned at = 0;
  for (unsigned long long i = 0; i < steps; ++i)
    asm volatile("ld.global.cg.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(at) : "l"(places + at), "l"(last));
  *out = at;
}

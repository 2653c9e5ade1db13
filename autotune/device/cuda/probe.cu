// Kernels of the measuring itself: nothing of a family is in here.

// What a launch costs when it does nothing.
template <class Policy>
__global__ void empty() {}

// Holds the device busy for `nanoseconds`, so that everything queued behind it is there when it ends and
// no sample contains the host's launch time.
template <class Policy>
__global__ void delay(unsigned long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}

// Fills the L2 cache with the lines of `flood`, which displace all others: lines that a kernel marked evict_last, or
// that persist, outlive any number of plain writes, and make way for lines of the same rank alone.
template <class Policy>
__global__ void displace(uint4* flood, unsigned long long count) {
#if __CUDA_ARCH__ >= 800
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  unsigned long long last;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %1, %1, %1}, %2;" ::"l"(flood + i), "r"(0), "l"(last));
#endif
}

// Makes the lines of `flood`, of 128 bytes, such as any other; a plain write then displaces them.
template <class Policy>
__global__ void release(unsigned char* flood, unsigned long long count) {
#if __CUDA_ARCH__ >= 800
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(flood + 128 * i));
#endif
}

// Adds to `count` the number of 4-byte words in which a and b differ, the tail compared by bytes.
template <class Policy>
__global__ void mismatches(const unsigned char* a, const unsigned char* b, unsigned long long bytes,
                           unsigned long long* count) {
  const unsigned long long words = bytes / 4, stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  unsigned long long found = 0;
  for (unsigned long long i = first; i < words; i += stride)
    found += reinterpret_cast<const unsigned*>(a)[i] != reinterpret_cast<const unsigned*>(b)[i];
  if (first < bytes % 4) found += a[words * 4 + first] != b[words * 4 + first];
  if (found) atomicAdd(count, found);
}

__device__ inline float distance(float a, float b) { return fabsf(__fsub_rn(a, b)); }
__device__ inline double distance(double a, double b) { return fabs(__dsub_rn(a, b)); }
__device__ inline float reach(float b, float relative, float absolute) {
  return __fadd_rn(absolute, __fmul_rn(relative, fabsf(b)));
}
__device__ inline double reach(double b, double relative, double absolute) {
  return __dadd_rn(absolute, __dmul_rn(relative, fabs(b)));
}

// Adds to `count` in how many of `elements` a and b are further apart than numpy.isclose allows, by its own arithmetic
// (nothing is contracted); NaN equals only NaN, or a NaN in b anything.
template <class Number>
__device__ inline void apart(const Number* a, const Number* b, unsigned long long elements, Number relative,
                             Number absolute, bool ignores_nan, unsigned long long* count) {
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  unsigned long long found = 0;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements;
       i += stride) {
    const Number x = a[i], y = b[i];
    const bool is_near = isfinite(y) && distance(x, y) <= reach(y, relative, absolute);
    found += !(is_near || x == y || (isnan(y) && (ignores_nan || isnan(x))));
  }
  if (found) atomicAdd(count, found);
}

template <class Policy>
__global__ void apart_float32(const float* a, const float* b, unsigned long long elements, double relative,
                              double absolute, unsigned long long ignores_nan, unsigned long long* count) {
  apart(a, b, elements, static_cast<float>(relative), static_cast<float>(absolute), ignores_nan != 0, count);
}

template <class Policy>
__global__ void apart_float64(const double* a, const double* b, unsigned long long elements, double relative,
                              double absolute, unsigned long long ignores_nan, unsigned long long* count) {
  apart(a, b, elements, relative, absolute, ignores_nan != 0, count);
}

__device__ inline unsigned long long mixed(unsigned long long x) {  // Vigna's splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Adds to `sum` a number made of each 4-byte word of a and its place, the tail taken by bytes.
template <class Policy>
__global__ void checksum(const unsigned char* a, unsigned long long bytes, unsigned long long* sum) {
  constexpr unsigned long long kStep = 0x9e3779b97f4a7c15ull;
  const unsigned long long words = bytes / 4, stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  unsigned long long found = 0;
  for (unsigned long long i = first; i < words; i += stride)
    found += mixed((i + 1) * kStep + reinterpret_cast<const unsigned*>(a)[i]);
  if (first < bytes % 4) found += mixed((words + first + 1) * kStep + a[words * 4 + first]);
  if (found) atomicAdd(sum, found);
}

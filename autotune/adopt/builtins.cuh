// What CUDA C++ has without an include, declared for libclang: nothing here is compiled, only parsed.
// clang-format off
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
#define __managed__ __attribute__((managed))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
#define CUDART_INF_F __builtin_huge_valf()
#define CUDART_INF __builtin_huge_val()
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623158e+308
#define DBL_EPSILON 2.2204460492503131e-16
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define M_PI 3.14159265358979323846
#define RAND_MAX 2147483647
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define NULL 0
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t; typedef unsigned long uint64_t;
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned uint; typedef unsigned long ulong;
typedef struct FILE FILE;
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; __host__ __device__ constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {} };
extern const __device__ uint3 threadIdx, blockIdx;
extern const __device__ dim3 blockDim, gridDim;
extern const __device__ int warpSize;
typedef unsigned long long cudaTextureObject_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef int cudaError_t;
__host__ int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0);
struct char1 { signed char x; };
__host__ __device__ char1 make_char1(signed char x);
struct __align__(2) char2 { signed char x, y; };
__host__ __device__ char2 make_char2(signed char x, signed char y);
struct char3 { signed char x, y, z; };
__host__ __device__ char3 make_char3(signed char x, signed char y, signed char z);
struct __align__(4) char4 { signed char x, y, z, w; };
__host__ __device__ char4 make_char4(signed char x, signed char y, signed char z, signed char w);
struct uchar1 { unsigned char x; };
__host__ __device__ uchar1 make_uchar1(unsigned char x);
struct __align__(2) uchar2 { unsigned char x, y; };
__host__ __device__ uchar2 make_uchar2(unsigned char x, unsigned char y);
struct uchar3 { unsigned char x, y, z; };
__host__ __device__ uchar3 make_uchar3(unsigned char x, unsigned char y, unsigned char z);
struct __align__(4) uchar4 { unsigned char x, y, z, w; };
__host__ __device__ uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w);
struct short1 { short x; };
__host__ __device__ short1 make_short1(short x);
struct __align__(4) short2 { short x, y; };
__host__ __device__ short2 make_short2(short x, short y);
struct short3 { short x, y, z; };
__host__ __device__ short3 make_short3(short x, short y, short z);
struct __align__(8) short4 { short x, y, z, w; };
__host__ __device__ short4 make_short4(short x, short y, short z, short w);
struct ushort1 { unsigned short x; };
__host__ __device__ ushort1 make_ushort1(unsigned short x);
struct __align__(4) ushort2 { unsigned short x, y; };
__host__ __device__ ushort2 make_ushort2(unsigned short x, unsigned short y);
struct ushort3 { unsigned short x, y, z; };
__host__ __device__ ushort3 make_ushort3(unsigned short x, unsigned short y, unsigned short z);
struct __align__(8) ushort4 { unsigned short x, y, z, w; };
__host__ __device__ ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z, unsigned short w);
struct int1 { int x; };
__host__ __device__ int1 make_int1(int x);
struct __align__(8) int2 { int x, y; };
__host__ __device__ int2 make_int2(int x, int y);
struct int3 { int x, y, z; };
__host__ __device__ int3 make_int3(int x, int y, int z);
struct __align__(16) int4 { int x, y, z, w; };
__host__ __device__ int4 make_int4(int x, int y, int z, int w);
struct uint1 { unsigned x; };
__host__ __device__ uint1 make_uint1(unsigned x);
struct __align__(8) uint2 { unsigned x, y; };
__host__ __device__ uint2 make_uint2(unsigned x, unsigned y);
__host__ __device__ uint3 make_uint3(unsigned x, unsigned y, unsigned z);
struct __align__(16) uint4 { unsigned x, y, z, w; };
__host__ __device__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w);
struct long1 { long x; };
__host__ __device__ long1 make_long1(long x);
struct __align__(16) long2 { long x, y; };
__host__ __device__ long2 make_long2(long x, long y);
struct long3 { long x, y, z; };
__host__ __device__ long3 make_long3(long x, long y, long z);
struct __align__(16) long4 { long x, y, z, w; };
__host__ __device__ long4 make_long4(long x, long y, long z, long w);
struct ulong1 { unsigned long x; };
__host__ __device__ ulong1 make_ulong1(unsigned long x);
struct __align__(16) ulong2 { unsigned long x, y; };
__host__ __device__ ulong2 make_ulong2(unsigned long x, unsigned long y);
struct ulong3 { unsigned long x, y, z; };
__host__ __device__ ulong3 make_ulong3(unsigned long x, unsigned long y, unsigned long z);
struct __align__(16) ulong4 { unsigned long x, y, z, w; };
__host__ __device__ ulong4 make_ulong4(unsigned long x, unsigned long y, unsigned long z, unsigned long w);
struct longlong1 { long long x; };
__host__ __device__ longlong1 make_longlong1(long long x);
struct __align__(16) longlong2 { long long x, y; };
__host__ __device__ longlong2 make_longlong2(long long x, long long y);
struct longlong3 { long long x, y, z; };
__host__ __device__ longlong3 make_longlong3(long long x, long long y, long long z);
struct __align__(16) longlong4 { long long x, y, z, w; };
__host__ __device__ longlong4 make_longlong4(long long x, long long y, long long z, long long w);
struct ulonglong1 { unsigned long long x; };
__host__ __device__ ulonglong1 make_ulonglong1(unsigned long long x);
struct __align__(16) ulonglong2 { unsigned long long x, y; };
__host__ __device__ ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y);
struct ulonglong3 { unsigned long long x, y, z; };
__host__ __device__ ulonglong3 make_ulonglong3(unsigned long long x, unsigned long long y, unsigned long long z);
struct __align__(16) ulonglong4 { unsigned long long x, y, z, w; };
__host__ __device__ ulonglong4 make_ulonglong4(unsigned long long x, unsigned long long y, unsigned long long z, unsigned long long w);
struct float1 { float x; };
__host__ __device__ float1 make_float1(float x);
struct __align__(8) float2 { float x, y; };
__host__ __device__ float2 make_float2(float x, float y);
struct float3 { float x, y, z; };
__host__ __device__ float3 make_float3(float x, float y, float z);
struct __align__(16) float4 { float x, y, z, w; };
__host__ __device__ float4 make_float4(float x, float y, float z, float w);
struct double1 { double x; };
__host__ __device__ double1 make_double1(double x);
struct __align__(16) double2 { double x, y; };
__host__ __device__ double2 make_double2(double x, double y);
struct double3 { double x, y, z; };
__host__ __device__ double3 make_double3(double x, double y, double z);
struct __align__(16) double4 { double x, y, z, w; };
__host__ __device__ double4 make_double4(double x, double y, double z, double w);
__device__ void __syncthreads();
__host__ __device__ void __syncwarp(unsigned mask = 0xffffffffu);
__host__ __device__ int __syncthreads_count(int);
__host__ __device__ int __syncthreads_and(int);
__host__ __device__ int __syncthreads_or(int);
__host__ __device__ void __threadfence();
__host__ __device__ void __threadfence_block();
__host__ __device__ void __threadfence_system();
__host__ __device__ void __trap();
__host__ __device__ long long clock64();
__host__ __device__ int clock();
__host__ __device__ unsigned __activemask();
__host__ __device__ unsigned __ballot_sync(unsigned, int);
__host__ __device__ int __all_sync(unsigned, int);
__host__ __device__ int __any_sync(unsigned, int);
__host__ __device__ int __popc(unsigned);
__host__ __device__ int __popcll(unsigned long long);
__host__ __device__ int __clz(int);
__host__ __device__ int __clzll(long long);
__host__ __device__ int __ffs(int);
__host__ __device__ int __ffsll(long long);
__host__ __device__ unsigned __brev(unsigned);
__host__ __device__ int __mul24(int, int);
__host__ __device__ unsigned __umul24(unsigned, unsigned);
__host__ __device__ int __mulhi(int, int);
__host__ __device__ unsigned __umulhi(unsigned, unsigned);
__host__ __device__ unsigned long long __umul64hi(unsigned long long, unsigned long long);
__host__ __device__ int __float_as_int(float);
__host__ __device__ float __int_as_float(int);
__host__ __device__ unsigned __float_as_uint(float);
__host__ __device__ float __uint_as_float(unsigned);
__host__ __device__ long long __double_as_longlong(double);
__host__ __device__ double __longlong_as_double(long long);
__host__ __device__ int __float2int_rn(float);
__host__ __device__ int __float2int_rd(float);
__host__ __device__ int __float2int_rz(float);
__host__ __device__ float __int2float_rn(int);
__host__ __device__ float __saturatef(float);
__host__ __device__ void assert(bool);
__host__ __device__ int printf(const char*, ...);
__host__ __device__ void* malloc(size_t);
__host__ __device__ void free(void*);
__host__ __device__ void* memcpy(void*, const void*, size_t);
__host__ __device__ void* memset(void*, int, size_t);
__host__ __device__ int abs(int);
__host__ __device__ long labs(long);
__host__ __device__ int rand();
__host__ __device__ void srand(unsigned);
__host__ __device__ void exit(int);
__host__ __device__ int atoi(const char*);
__device__ int __shfl_sync(unsigned, int, int, int = 32); __device__ int __shfl_up_sync(unsigned, int, unsigned, int = 32); __device__ int __shfl_down_sync(unsigned, int, unsigned, int = 32); __device__ int __shfl_xor_sync(unsigned, int, int, int = 32);
__host__ __device__ int min(int, int); __host__ __device__ int max(int, int);
__device__ unsigned __shfl_sync(unsigned, unsigned, int, int = 32); __device__ unsigned __shfl_up_sync(unsigned, unsigned, unsigned, int = 32); __device__ unsigned __shfl_down_sync(unsigned, unsigned, unsigned, int = 32); __device__ unsigned __shfl_xor_sync(unsigned, unsigned, int, int = 32);
__host__ __device__ unsigned min(unsigned, unsigned); __host__ __device__ unsigned max(unsigned, unsigned);
__device__ long __shfl_sync(unsigned, long, int, int = 32); __device__ long __shfl_up_sync(unsigned, long, unsigned, int = 32); __device__ long __shfl_down_sync(unsigned, long, unsigned, int = 32); __device__ long __shfl_xor_sync(unsigned, long, int, int = 32);
__host__ __device__ long min(long, long); __host__ __device__ long max(long, long);
__device__ unsigned long __shfl_sync(unsigned, unsigned long, int, int = 32); __device__ unsigned long __shfl_up_sync(unsigned, unsigned long, unsigned, int = 32); __device__ unsigned long __shfl_down_sync(unsigned, unsigned long, unsigned, int = 32); __device__ unsigned long __shfl_xor_sync(unsigned, unsigned long, int, int = 32);
__host__ __device__ unsigned long min(unsigned long, unsigned long); __host__ __device__ unsigned long max(unsigned long, unsigned long);
__device__ long long __shfl_sync(unsigned, long long, int, int = 32); __device__ long long __shfl_up_sync(unsigned, long long, unsigned, int = 32); __device__ long long __shfl_down_sync(unsigned, long long, unsigned, int = 32); __device__ long long __shfl_xor_sync(unsigned, long long, int, int = 32);
__host__ __device__ long long min(long long, long long); __host__ __device__ long long max(long long, long long);
__device__ unsigned long long __shfl_sync(unsigned, unsigned long long, int, int = 32); __device__ unsigned long long __shfl_up_sync(unsigned, unsigned long long, unsigned, int = 32); __device__ unsigned long long __shfl_down_sync(unsigned, unsigned long long, unsigned, int = 32); __device__ unsigned long long __shfl_xor_sync(unsigned, unsigned long long, int, int = 32);
__host__ __device__ unsigned long long min(unsigned long long, unsigned long long); __host__ __device__ unsigned long long max(unsigned long long, unsigned long long);
__device__ float __shfl_sync(unsigned, float, int, int = 32); __device__ float __shfl_up_sync(unsigned, float, unsigned, int = 32); __device__ float __shfl_down_sync(unsigned, float, unsigned, int = 32); __device__ float __shfl_xor_sync(unsigned, float, int, int = 32);
__host__ __device__ float min(float, float); __host__ __device__ float max(float, float);
__device__ double __shfl_sync(unsigned, double, int, int = 32); __device__ double __shfl_up_sync(unsigned, double, unsigned, int = 32); __device__ double __shfl_down_sync(unsigned, double, unsigned, int = 32); __device__ double __shfl_xor_sync(unsigned, double, int, int = 32);
__host__ __device__ double min(double, double); __host__ __device__ double max(double, double);
__device__ int atomicAdd(int*, int); __device__ int atomicExch(int*, int);
__device__ unsigned atomicAdd(unsigned*, unsigned); __device__ unsigned atomicExch(unsigned*, unsigned);
__device__ unsigned long long atomicAdd(unsigned long long*, unsigned long long); __device__ unsigned long long atomicExch(unsigned long long*, unsigned long long);
__device__ float atomicAdd(float*, float); __device__ float atomicExch(float*, float);
__device__ double atomicAdd(double*, double); __device__ double atomicExch(double*, double);
__device__ int atomicSub(int*, int); __device__ int atomicMin(int*, int); __device__ int atomicMax(int*, int); __device__ int atomicAnd(int*, int); __device__ int atomicOr(int*, int); __device__ int atomicXor(int*, int); __device__ int atomicCAS(int*, int, int);
__device__ unsigned atomicSub(unsigned*, unsigned); __device__ unsigned atomicMin(unsigned*, unsigned); __device__ unsigned atomicMax(unsigned*, unsigned); __device__ unsigned atomicAnd(unsigned*, unsigned); __device__ unsigned atomicOr(unsigned*, unsigned); __device__ unsigned atomicXor(unsigned*, unsigned); __device__ unsigned atomicCAS(unsigned*, unsigned, unsigned);
__device__ long long atomicSub(long long*, long long); __device__ long long atomicMin(long long*, long long); __device__ long long atomicMax(long long*, long long); __device__ long long atomicAnd(long long*, long long); __device__ long long atomicOr(long long*, long long); __device__ long long atomicXor(long long*, long long); __device__ long long atomicCAS(long long*, long long, long long);
__device__ unsigned long long atomicSub(unsigned long long*, unsigned long long); __device__ unsigned long long atomicMin(unsigned long long*, unsigned long long); __device__ unsigned long long atomicMax(unsigned long long*, unsigned long long); __device__ unsigned long long atomicAnd(unsigned long long*, unsigned long long); __device__ unsigned long long atomicOr(unsigned long long*, unsigned long long); __device__ unsigned long long atomicXor(unsigned long long*, unsigned long long); __device__ unsigned long long atomicCAS(unsigned long long*, unsigned long long, unsigned long long);
__device__ unsigned atomicInc(unsigned*, unsigned); __device__ unsigned atomicDec(unsigned*, unsigned);
template <class T> __device__ T __ldg(const T*);
__host__ __device__ double sqrt(double); __host__ __device__ float sqrt(float); __host__ __device__ float sqrtf(float);
__host__ __device__ double rsqrt(double); __host__ __device__ float rsqrt(float); __host__ __device__ float rsqrtf(float);
__host__ __device__ double cbrt(double); __host__ __device__ float cbrt(float); __host__ __device__ float cbrtf(float);
__host__ __device__ double rcbrt(double); __host__ __device__ float rcbrt(float); __host__ __device__ float rcbrtf(float);
__host__ __device__ double sin(double); __host__ __device__ float sin(float); __host__ __device__ float sinf(float);
__host__ __device__ double cos(double); __host__ __device__ float cos(float); __host__ __device__ float cosf(float);
__host__ __device__ double tan(double); __host__ __device__ float tan(float); __host__ __device__ float tanf(float);
__host__ __device__ double asin(double); __host__ __device__ float asin(float); __host__ __device__ float asinf(float);
__host__ __device__ double acos(double); __host__ __device__ float acos(float); __host__ __device__ float acosf(float);
__host__ __device__ double atan(double); __host__ __device__ float atan(float); __host__ __device__ float atanf(float);
__host__ __device__ double sinh(double); __host__ __device__ float sinh(float); __host__ __device__ float sinhf(float);
__host__ __device__ double cosh(double); __host__ __device__ float cosh(float); __host__ __device__ float coshf(float);
__host__ __device__ double tanh(double); __host__ __device__ float tanh(float); __host__ __device__ float tanhf(float);
__host__ __device__ double exp(double); __host__ __device__ float exp(float); __host__ __device__ float expf(float);
__host__ __device__ double exp2(double); __host__ __device__ float exp2(float); __host__ __device__ float exp2f(float);
__host__ __device__ double exp10(double); __host__ __device__ float exp10(float); __host__ __device__ float exp10f(float);
__host__ __device__ double expm1(double); __host__ __device__ float expm1(float); __host__ __device__ float expm1f(float);
__host__ __device__ double log(double); __host__ __device__ float log(float); __host__ __device__ float logf(float);
__host__ __device__ double log2(double); __host__ __device__ float log2(float); __host__ __device__ float log2f(float);
__host__ __device__ double log10(double); __host__ __device__ float log10(float); __host__ __device__ float log10f(float);
__host__ __device__ double log1p(double); __host__ __device__ float log1p(float); __host__ __device__ float log1pf(float);
__host__ __device__ double floor(double); __host__ __device__ float floor(float); __host__ __device__ float floorf(float);
__host__ __device__ double ceil(double); __host__ __device__ float ceil(float); __host__ __device__ float ceilf(float);
__host__ __device__ double round(double); __host__ __device__ float round(float); __host__ __device__ float roundf(float);
__host__ __device__ double rint(double); __host__ __device__ float rint(float); __host__ __device__ float rintf(float);
__host__ __device__ double trunc(double); __host__ __device__ float trunc(float); __host__ __device__ float truncf(float);
__host__ __device__ double fabs(double); __host__ __device__ float fabs(float); __host__ __device__ float fabsf(float);
__host__ __device__ double erf(double); __host__ __device__ float erf(float); __host__ __device__ float erff(float);
__host__ __device__ double erfc(double); __host__ __device__ float erfc(float); __host__ __device__ float erfcf(float);
__host__ __device__ double erfinv(double); __host__ __device__ float erfinv(float); __host__ __device__ float erfinvf(float);
__host__ __device__ double lgamma(double); __host__ __device__ float lgamma(float); __host__ __device__ float lgammaf(float);
__host__ __device__ double tgamma(double); __host__ __device__ float tgamma(float); __host__ __device__ float tgammaf(float);
__host__ __device__ double sinpi(double); __host__ __device__ float sinpi(float); __host__ __device__ float sinpif(float);
__host__ __device__ double cospi(double); __host__ __device__ float cospi(float); __host__ __device__ float cospif(float);
__host__ __device__ double nearbyint(double); __host__ __device__ float nearbyint(float); __host__ __device__ float nearbyintf(float);
__host__ __device__ double logb(double); __host__ __device__ float logb(float); __host__ __device__ float logbf(float);
__host__ __device__ double pow(double, double); __host__ __device__ float pow(float, float); __host__ __device__ float powf(float, float);
__host__ __device__ double fmod(double, double); __host__ __device__ float fmod(float, float); __host__ __device__ float fmodf(float, float);
__host__ __device__ double atan2(double, double); __host__ __device__ float atan2(float, float); __host__ __device__ float atan2f(float, float);
__host__ __device__ double fmin(double, double); __host__ __device__ float fmin(float, float); __host__ __device__ float fminf(float, float);
__host__ __device__ double fmax(double, double); __host__ __device__ float fmax(float, float); __host__ __device__ float fmaxf(float, float);
__host__ __device__ double hypot(double, double); __host__ __device__ float hypot(float, float); __host__ __device__ float hypotf(float, float);
__host__ __device__ double copysign(double, double); __host__ __device__ float copysign(float, float); __host__ __device__ float copysignf(float, float);
__host__ __device__ double fdim(double, double); __host__ __device__ float fdim(float, float); __host__ __device__ float fdimf(float, float);
__host__ __device__ double remainder(double, double); __host__ __device__ float remainder(float, float); __host__ __device__ float remainderf(float, float);
__host__ __device__ double abs(double); __host__ __device__ float abs(float); __host__ __device__ double pow(double, int); __host__ __device__ float pow(float, int);
__host__ __device__ double fma(double, double, double); __host__ __device__ float fma(float, float, float); __host__ __device__ float fmaf(float, float, float);
__device__ void sincos(double, double*, double*); __device__ void sincosf(float, float*, float*); __device__ void __sincosf(float, float*, float*); __host__ __device__ double modf(double, double*); __host__ __device__ float modff(float, float*); __host__ __device__ float ldexpf(float, int); __host__ __device__ double ldexp(double, int); __host__ __device__ float frexpf(float, int*);
__host__ __device__ bool isnan(float); __host__ __device__ bool isnan(double); __host__ __device__ bool isinf(float); __host__ __device__ bool isinf(double); __host__ __device__ bool isfinite(float); __host__ __device__ bool isfinite(double);
__device__ float __sinf(float);
__device__ float __cosf(float);
__device__ float __tanf(float);
__device__ float __expf(float);
__device__ float __exp10f(float);
__device__ float __logf(float);
__device__ float __log2f(float);
__device__ float __log10f(float);
__device__ float __powf(float, float); __device__ float __fdividef(float, float); __device__ float __frsqrt_rn(float); __device__ float __fsqrt_rn(float); __device__ float __frcp_rn(float); __device__ float __fdiv_rn(float, float); __device__ double __ddiv_rn(double, double); __device__ double __dsqrt_rn(double);
__device__ float __fmaf_rn(float, float, float); __device__ float __fadd_rn(float, float); __device__ float __fmul_rn(float, float); __device__ float __fsub_rn(float, float); __device__ double __dadd_rn(double, double); __device__ double __dmul_rn(double, double); __device__ double __fma_rn(double, double, double);
template <class T> __device__ T tex1Dfetch(cudaTextureObject_t, int); template <class T> __device__ T tex1D(cudaTextureObject_t, float); template <class T> __device__ T tex2D(cudaTextureObject_t, float, float);
__host__ __device__ double acosh(double); __host__ __device__ float acosh(float); __host__ __device__ float acoshf(float);
__host__ __device__ double asinh(double); __host__ __device__ float asinh(float); __host__ __device__ float asinhf(float);
__host__ __device__ double atanh(double); __host__ __device__ float atanh(float); __host__ __device__ float atanhf(float);
__host__ __device__ double erfcinv(double); __host__ __device__ float erfcinv(float); __host__ __device__ float erfcinvf(float);
__host__ __device__ double erfcx(double); __host__ __device__ float erfcx(float); __host__ __device__ float erfcxf(float);
__host__ __device__ double j0(double); __host__ __device__ float j0(float); __host__ __device__ float j0f(float);
__host__ __device__ double j1(double); __host__ __device__ float j1(float); __host__ __device__ float j1f(float);
__host__ __device__ double y0(double); __host__ __device__ float y0(float); __host__ __device__ float y0f(float);
__host__ __device__ double y1(double); __host__ __device__ float y1(float); __host__ __device__ float y1f(float);
__host__ __device__ double normcdf(double); __host__ __device__ float normcdf(float); __host__ __device__ float normcdff(float);
__host__ __device__ double normcdfinv(double); __host__ __device__ float normcdfinv(float); __host__ __device__ float normcdfinvf(float);
__host__ __device__ double jn(int, double); __host__ __device__ float jn(int, float); __host__ __device__ float jnf(int, float);
__host__ __device__ double yn(int, double); __host__ __device__ float yn(int, float); __host__ __device__ float ynf(int, float);
__host__ __device__ double nextafter(double, double); __host__ __device__ float nextafter(float, float); __host__ __device__ float nextafterf(float, float);
__host__ __device__ double rhypot(double, double); __host__ __device__ float rhypot(float, float); __host__ __device__ float rhypotf(float, float);
__host__ __device__ double norm3d(double, double, double); __host__ __device__ float norm3d(float, float, float); __host__ __device__ float norm3df(float, float, float);
__host__ __device__ double rnorm3d(double, double, double); __host__ __device__ float rnorm3d(float, float, float); __host__ __device__ float rnorm3df(float, float, float);
__host__ __device__ double norm4d(double, double, double, double); __host__ __device__ float norm4d(float, float, float, float); __host__ __device__ float norm4df(float, float, float, float);
__host__ __device__ double rnorm4d(double, double, double, double); __host__ __device__ float rnorm4d(float, float, float, float); __host__ __device__ float rnorm4df(float, float, float, float);
__host__ __device__ double frexp(double, int*); __host__ __device__ float frexp(float, int*);
__host__ __device__ float ldexp(float, int);
__host__ __device__ double scalbn(double, int); __host__ __device__ float scalbn(float, int); __host__ __device__ float scalbnf(float, int);
__host__ __device__ double scalbln(double, long); __host__ __device__ float scalbln(float, long); __host__ __device__ float scalblnf(float, long);
__host__ __device__ float modf(float, float*);
__host__ __device__ double remquo(double, double, int*); __host__ __device__ float remquo(float, float, int*); __host__ __device__ float remquof(float, float, int*);
__host__ __device__ int ilogb(double); __host__ __device__ int ilogb(float); __host__ __device__ int ilogbf(float);
__host__ __device__ long lrint(double); __host__ __device__ long lrint(float); __host__ __device__ long lrintf(float);
__host__ __device__ long lround(double); __host__ __device__ long lround(float); __host__ __device__ long lroundf(float);
__host__ __device__ long long llrint(double); __host__ __device__ long long llrint(float); __host__ __device__ long long llrintf(float);
__host__ __device__ long long llround(double); __host__ __device__ long long llround(float); __host__ __device__ long long llroundf(float);
__host__ __device__ double nan(const char*); __host__ __device__ float nanf(const char*); __host__ __device__ float fdividef(float, float); __host__ __device__ long long llabs(long long); __device__ void sincospi(double, double*, double*); __device__ void sincospif(float, float*, float*);
__host__ __device__ bool signbit(float); __host__ __device__ bool signbit(double);
__device__ int __float2int_ru(float); __device__ unsigned __float2uint_rn(float); __device__ unsigned __float2uint_rz(float); __device__ unsigned __float2uint_ru(float); __device__ unsigned __float2uint_rd(float); __device__ long long __float2ll_rn(float); __device__ long long __float2ll_rz(float); __device__ long long __float2ll_ru(float); __device__ long long __float2ll_rd(float); __device__ unsigned long long __float2ull_rn(float); __device__ unsigned long long __float2ull_rz(float); __device__ unsigned long long __float2ull_ru(float); __device__ unsigned long long __float2ull_rd(float);
__device__ int __double2int_rn(double); __device__ int __double2int_rz(double); __device__ int __double2int_ru(double); __device__ int __double2int_rd(double); __device__ unsigned __double2uint_rn(double); __device__ unsigned __double2uint_rz(double); __device__ unsigned __double2uint_ru(double); __device__ unsigned __double2uint_rd(double); __device__ long long __double2ll_rn(double); __device__ long long __double2ll_rz(double); __device__ long long __double2ll_ru(double); __device__ long long __double2ll_rd(double); __device__ unsigned long long __double2ull_rn(double); __device__ unsigned long long __double2ull_rz(double); __device__ unsigned long long __double2ull_ru(double); __device__ unsigned long long __double2ull_rd(double);
__device__ float __int2float_rz(int); __device__ float __int2float_ru(int); __device__ float __int2float_rd(int); __device__ double __int2double_rn(int);
__device__ float __uint2float_rn(unsigned); __device__ float __uint2float_rz(unsigned); __device__ float __uint2float_ru(unsigned); __device__ float __uint2float_rd(unsigned); __device__ double __uint2double_rn(unsigned);
__device__ float __ll2float_rn(long long); __device__ float __ll2float_rz(long long); __device__ float __ll2float_ru(long long); __device__ float __ll2float_rd(long long); __device__ double __ll2double_rn(long long); __device__ double __ll2double_rz(long long); __device__ double __ll2double_ru(long long); __device__ double __ll2double_rd(long long);
__device__ float __ull2float_rn(unsigned long long); __device__ float __ull2float_rz(unsigned long long); __device__ float __ull2float_ru(unsigned long long); __device__ float __ull2float_rd(unsigned long long); __device__ double __ull2double_rn(unsigned long long); __device__ double __ull2double_rz(unsigned long long); __device__ double __ull2double_ru(unsigned long long); __device__ double __ull2double_rd(unsigned long long);
__device__ float __double2float_rn(double); __device__ float __double2float_rz(double); __device__ float __double2float_ru(double); __device__ float __double2float_rd(double); __device__ int __double2hiint(double); __device__ int __double2loint(double); __device__ double __hiloint2double(int, int);
__device__ float __fadd_rz(float, float); __device__ float __fadd_ru(float, float); __device__ float __fadd_rd(float, float); __device__ float __fsub_rz(float, float); __device__ float __fsub_ru(float, float); __device__ float __fsub_rd(float, float); __device__ float __fmul_rz(float, float); __device__ float __fmul_ru(float, float); __device__ float __fmul_rd(float, float); __device__ float __fdiv_rz(float, float); __device__ float __fdiv_ru(float, float); __device__ float __fdiv_rd(float, float);
__device__ float __frcp_rz(float); __device__ float __frcp_ru(float); __device__ float __frcp_rd(float); __device__ float __fsqrt_rz(float); __device__ float __fsqrt_ru(float); __device__ float __fsqrt_rd(float); __device__ float __fmaf_rz(float, float, float); __device__ float __fmaf_ru(float, float, float); __device__ float __fmaf_rd(float, float, float);
__device__ double __dadd_rz(double, double); __device__ double __dadd_ru(double, double); __device__ double __dadd_rd(double, double); __device__ double __dsub_rn(double, double); __device__ double __dsub_rz(double, double); __device__ double __dsub_ru(double, double); __device__ double __dsub_rd(double, double); __device__ double __dmul_rz(double, double); __device__ double __dmul_ru(double, double); __device__ double __dmul_rd(double, double); __device__ double __ddiv_rz(double, double); __device__ double __ddiv_ru(double, double); __device__ double __ddiv_rd(double, double);
__device__ double __drcp_rn(double); __device__ double __drcp_rz(double); __device__ double __drcp_ru(double); __device__ double __drcp_rd(double); __device__ double __dsqrt_rz(double); __device__ double __dsqrt_ru(double); __device__ double __dsqrt_rd(double); __device__ double __fma_rz(double, double, double); __device__ double __fma_ru(double, double, double); __device__ double __fma_rd(double, double, double);
__device__ float __tanhf(float); __device__ unsigned long long __brevll(unsigned long long); __device__ unsigned __byte_perm(unsigned, unsigned, unsigned); __device__ long long __mul64hi(long long, long long); __device__ unsigned __sad(int, int, unsigned); __device__ unsigned __usad(unsigned, unsigned, unsigned); __device__ int __hadd(int, int); __device__ int __rhadd(int, int); __device__ unsigned __uhadd(unsigned, unsigned); __device__ unsigned __urhadd(unsigned, unsigned);
__device__ unsigned __funnelshift_l(unsigned, unsigned, unsigned); __device__ unsigned __funnelshift_lc(unsigned, unsigned, unsigned); __device__ unsigned __funnelshift_r(unsigned, unsigned, unsigned); __device__ unsigned __funnelshift_rc(unsigned, unsigned, unsigned); __device__ unsigned __fns(unsigned, unsigned, int); __device__ void __nanosleep(unsigned);
template <class T> __device__ T __ldca(const T*); template <class T> __device__ T __ldcg(const T*); template <class T> __device__ T __ldcs(const T*); template <class T> __device__ T __ldcv(const T*); template <class T> __device__ T __ldlu(const T*); template <class T> __device__ void __stcg(T*, T); template <class T> __device__ void __stcs(T*, T); template <class T> __device__ void __stwb(T*, T); template <class T> __device__ void __stwt(T*, T);
__device__ int __reduce_add_sync(unsigned, int); __device__ int __reduce_min_sync(unsigned, int); __device__ int __reduce_max_sync(unsigned, int); __device__ unsigned __reduce_add_sync(unsigned, unsigned); __device__ unsigned __reduce_min_sync(unsigned, unsigned); __device__ unsigned __reduce_max_sync(unsigned, unsigned); __device__ unsigned __reduce_and_sync(unsigned, unsigned); __device__ unsigned __reduce_or_sync(unsigned, unsigned); __device__ unsigned __reduce_xor_sync(unsigned, unsigned);
template <class T> __device__ unsigned __match_any_sync(unsigned, T); template <class T> __device__ unsigned __match_all_sync(unsigned, T, int*);
__device__ unsigned __vabs2(unsigned); __device__ unsigned __vabs4(unsigned); __device__ unsigned __vabsss2(unsigned); __device__ unsigned __vabsss4(unsigned); __device__ unsigned __vneg2(unsigned); __device__ unsigned __vneg4(unsigned); __device__ unsigned __vnegss2(unsigned); __device__ unsigned __vnegss4(unsigned);
__device__ unsigned __vabsdiffs2(unsigned, unsigned); __device__ unsigned __vabsdiffu2(unsigned, unsigned); __device__ unsigned __vadd2(unsigned, unsigned); __device__ unsigned __vaddss2(unsigned, unsigned); __device__ unsigned __vaddus2(unsigned, unsigned); __device__ unsigned __vavgs2(unsigned, unsigned); __device__ unsigned __vavgu2(unsigned, unsigned); __device__ unsigned __vcmpeq2(unsigned, unsigned); __device__ unsigned __vcmpges2(unsigned, unsigned); __device__ unsigned __vcmpgeu2(unsigned, unsigned); __device__ unsigned __vcmpgts2(unsigned, unsigned); __device__ unsigned __vcmpgtu2(unsigned, unsigned); __device__ unsigned __vcmples2(unsigned, unsigned); __device__ unsigned __vcmpleu2(unsigned, unsigned); __device__ unsigned __vcmplts2(unsigned, unsigned); __device__ unsigned __vcmpltu2(unsigned, unsigned); __device__ unsigned __vcmpne2(unsigned, unsigned); __device__ unsigned __vhaddu2(unsigned, unsigned); __device__ unsigned __vmaxs2(unsigned, unsigned); __device__ unsigned __vmaxu2(unsigned, unsigned); __device__ unsigned __vmins2(unsigned, unsigned); __device__ unsigned __vminu2(unsigned, unsigned); __device__ unsigned __vsads2(unsigned, unsigned); __device__ unsigned __vsadu2(unsigned, unsigned); __device__ unsigned __vseteq2(unsigned, unsigned); __device__ unsigned __vsetges2(unsigned, unsigned); __device__ unsigned __vsetgeu2(unsigned, unsigned); __device__ unsigned __vsetgts2(unsigned, unsigned); __device__ unsigned __vsetgtu2(unsigned, unsigned); __device__ unsigned __vsetles2(unsigned, unsigned); __device__ unsigned __vsetleu2(unsigned, unsigned); __device__ unsigned __vsetlts2(unsigned, unsigned); __device__ unsigned __vsetltu2(unsigned, unsigned); __device__ unsigned __vsetne2(unsigned, unsigned); __device__ unsigned __vsub2(unsigned, unsigned); __device__ unsigned __vsubss2(unsigned, unsigned); __device__ unsigned __vsubus2(unsigned, unsigned); __device__ unsigned __vabsdiffs4(unsigned, unsigned); __device__ unsigned __vabsdiffu4(unsigned, unsigned); __device__ unsigned __vadd4(unsigned, unsigned); __device__ unsigned __vaddss4(unsigned, unsigned); __device__ unsigned __vaddus4(unsigned, unsigned); __device__ unsigned __vavgs4(unsigned, unsigned); __device__ unsigned __vavgu4(unsigned, unsigned); __device__ unsigned __vcmpeq4(unsigned, unsigned); __device__ unsigned __vcmpges4(unsigned, unsigned); __device__ unsigned __vcmpgeu4(unsigned, unsigned); __device__ unsigned __vcmpgts4(unsigned, unsigned); __device__ unsigned __vcmpgtu4(unsigned, unsigned); __device__ unsigned __vcmples4(unsigned, unsigned); __device__ unsigned __vcmpleu4(unsigned, unsigned); __device__ unsigned __vcmplts4(unsigned, unsigned); __device__ unsigned __vcmpltu4(unsigned, unsigned); __device__ unsigned __vcmpne4(unsigned, unsigned); __device__ unsigned __vhaddu4(unsigned, unsigned); __device__ unsigned __vmaxs4(unsigned, unsigned); __device__ unsigned __vmaxu4(unsigned, unsigned); __device__ unsigned __vmins4(unsigned, unsigned); __device__ unsigned __vminu4(unsigned, unsigned); __device__ unsigned __vsads4(unsigned, unsigned); __device__ unsigned __vsadu4(unsigned, unsigned); __device__ unsigned __vseteq4(unsigned, unsigned); __device__ unsigned __vsetges4(unsigned, unsigned); __device__ unsigned __vsetgeu4(unsigned, unsigned); __device__ unsigned __vsetgts4(unsigned, unsigned); __device__ unsigned __vsetgtu4(unsigned, unsigned); __device__ unsigned __vsetles4(unsigned, unsigned); __device__ unsigned __vsetleu4(unsigned, unsigned); __device__ unsigned __vsetlts4(unsigned, unsigned); __device__ unsigned __vsetltu4(unsigned, unsigned); __device__ unsigned __vsetne4(unsigned, unsigned); __device__ unsigned __vsub4(unsigned, unsigned); __device__ unsigned __vsubss4(unsigned, unsigned); __device__ unsigned __vsubus4(unsigned, unsigned);
// Everywhere, as a header that brings them along may be missing.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

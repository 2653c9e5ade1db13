// All-pairs distance as one CUTLASS product whose epilogue gives D, for allpairs_peers.py.
//
//     nvcc -std=c++17 -O3 -DNDEBUG -arch=sm_90a --expt-relaxed-constexpr -shared -Xcompiler -fPIC -I CUTLASS/include
//       -DTILE=128,256,128 -DCLUSTER=2,1,1 benchmarks/allpairs_cutlass.cu -o cutlass.so
//
// int8 on warp-group products (TMA, warp-specialized, persistent): U W^T, where a row of U and a row of W have `rank`
// numbers for each attribute, `rank` in all attributes that agree and -1 in all others. So D = (rank A - U W^T) /
// (rank + 1): with rank 2 by a product with the inverse of 3 modulo 2^32, with rank 3 by a shift. `bands` > 1 computes,
// band of rows by band of rows, what is on and above the diagonal, and the epilogue stores each pair twice.
// Bits on the tensor cores (mma.m16n8k256, AND and population count): rows of A have a bit for each attribute and value
// that is had, rows of B for each that is not, and D is the product itself.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>

#include <cstdint>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#ifndef TILE
#define TILE 128, 256, 128
#endif
#ifndef CLUSTER
#define CLUSTER 2, 1, 1
#endif

namespace fusion = cutlass::epilogue::fusion;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;

template <int RANK>
struct Distance {
  template <class T>
  struct Of {
    CUTLASS_HOST_DEVICE T operator()(T const& products, T const& most) const {
      T distances;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < T::kElements; ++i) {
        const uint32_t rest = static_cast<uint32_t>(most[i]) - static_cast<uint32_t>(products[i]);
        distances[i] = static_cast<int>(RANK == 2 ? rest * 0xAAAAAAABu : rest >> 2);
      }
      return distances;
    }
  };
};

template <int RANK, bool IS_MIRRORED>
struct Product {
  template <int... N>
  using Sizes = cute::Shape<cute::Int<N>...>;
  using Tile = Sizes<TILE>;
  using Cluster = Sizes<CLUSTER>;
  static constexpr auto rounding = cutlass::FloatRoundStyle::round_to_nearest;
  using Distances = fusion::Sm90EVT<fusion::Sm90Compute<Distance<RANK>::template Of, int, int, rounding>,
                                    fusion::Sm90AccFetch, fusion::Sm90ScalarBroadcast<int>>;
  using Mirrored =
      fusion::Sm90EVT<fusion::Sm90AuxStore<0, void, int, rounding, Column, void, void, 1, false>, Distances>;
  using Epilogue = cute::conditional_t<IS_MIRRORED, Mirrored, Distances>;
  using Store = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, int, int, void, Row, 4, int, Row, 4,
      cutlass::epilogue::TmaWarpSpecializedCooperative, Epilogue>::CollectiveOp;
  using Main = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, int8_t, Row, 16, int8_t, Column, 16, int, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Store::SharedStorage))>,
      cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Main, Store>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  static typename Epilogue::Arguments epilogue(int most, int* mirrored, int64_t stride) {
    typename Distances::Arguments distances{{}, {{most}}, {}};
    if constexpr (IS_MIRRORED)
      return {distances, {mirrored, cute::make_stride(cute::_1{}, stride, int64_t{0})}};
    else
      return distances;
  }

  // Rows first to first + rows of D, and its columns from `column` on.
  static int run(const int8_t* u, const int8_t* w, int* d, int instances, int depth, int most, int first, int rows,
                 int column, cudaStream_t stream) {
    const int columns = instances - column;
    const auto rows_of = [](int64_t stride) { return cute::make_stride(stride, cute::_1{}, int64_t{0}); };
    int* mirrored = d + int64_t{column} * instances + first;
    typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {rows, columns, depth, 1},
        {u + int64_t{first} * depth, rows_of(depth), w + int64_t{column} * depth, rows_of(depth)},
        {epilogue(most, mirrored, instances),
         nullptr,
         {},
         d + int64_t{first} * instances + column,
         rows_of(instances)}};
    Gemm gemm;
    if (Gemm::get_workspace_size(arguments)) return 1000;
    if (const auto status = gemm.can_implement(arguments); status != cutlass::Status::kSuccess) return int(status);
    if (const auto status = gemm.initialize(arguments, nullptr, stream); status != cutlass::Status::kSuccess)
      return int(status);
    return int(gemm.run(stream));
  }
};

template <int RANK>
int distances(const int8_t* u, const int8_t* w, int* d, int instances, int depth, int most, int bands,
              cudaStream_t stream) {
  if (bands <= 1) return Product<RANK, false>::run(u, w, d, instances, depth, most, 0, instances, 0, stream);
  const int band = (instances / bands + 255) / 256 * 256;
  for (int first = 0; first < instances; first += band) {
    const int rows = first + band < instances ? band : instances - first;
    if (const int status = Product<RANK, true>::run(u, w, d, instances, depth, most, first, rows, first, stream))
      return status;
  }
  return 0;
}

// u, w: instances x depth numbers; d: instances x instances; both extents are multiples of 16. 0: it was launched.
extern "C" int distances_of_products(const int8_t* u, const int8_t* w, int* d, int instances, int depth, int rank,
                                     int attributes, int bands, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const int most = rank * attributes;
  return rank == 2 ? distances<2>(u, w, d, instances, depth, most, bands, on)
                   : distances<3>(u, w, d, instances, depth, most, bands, on);
}

// a, b: instances x depth bits, depth a multiple of 128.
extern "C" int distances_of_bits(const void* a, const void* b, int* d, int instances, int depth, void* stream) {
  using Bit = cutlass::uint1b_t;
  using Gemm = cutlass::gemm::device::Gemm<
      Bit, Row, Bit, Column, int, Row, int, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
      cutlass::gemm::GemmShape<128, 256, 512>, cutlass::gemm::GemmShape<64, 64, 512>,
      cutlass::gemm::GemmShape<16, 8, 256>,
      cutlass::epilogue::thread::LinearCombination<int, 4, int, int, cutlass::epilogue::thread::ScaleType::Nothing>,
      cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, 3, 128, 128, false, cutlass::arch::OpAndPopc>;
  Gemm gemm;
  typename Gemm::Arguments arguments{{instances, instances, depth},
                                     {static_cast<Bit*>(const_cast<void*>(a)), depth},
                                     {static_cast<Bit*>(const_cast<void*>(b)), depth},
                                     {d, instances},
                                     {d, instances},
                                     {}};
  return int(gemm(arguments, nullptr, static_cast<cudaStream_t>(stream)));
}

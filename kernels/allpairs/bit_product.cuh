// One instruction of the tensor cores on bits: C[m][n] += popcount(A[m] & B[n]) for 16 rows m, 8 columns n and 256
// bits.
//
// Its operands lie in the registers of a warp (PTX ISA, "Matrix fragments for mma.m16n8k256"): lane 4 g + t holds the
// words t and t + 4 of the rows g and g + 8 of A and of the column g of B, and of C the columns 2 t and 2 t + 1 of the
// rows g and g + 8. The order of the bits does not matter as long as it is the same in A and B.
#pragma once
#include "autotune/device.cuh"

struct BitRows {  // of A, one lane's share: the row g and the row g + 8, two words of each
  unsigned upper[2], lower[2];
};

struct BitColumns {  // of B, one lane's share: two words of the column g
  unsigned word[2];
};

struct BitSums {  // of C, one lane's share: two columns of the rows g and g + 8
  int upper[2], lower[2];
};

#ifdef AUTOTUNE_CPU
// Without tensor cores the lanes of a warp tell each other their words.
template <int WARPS>
AUTOTUNE_DEVICE void add_bit_product(BitSums& sums, const BitRows& a, const BitColumns& b) {
  __shared__ unsigned told[WARPS][32][6];
  const unsigned lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
  unsigned (*words)[6] = told[threadIdx.x / 32];
  const unsigned own[6] = {a.upper[0], a.upper[1], a.lower[0], a.lower[1], b.word[0], b.word[1]};
  for (int w = 0; w < 6; ++w) words[lane][w] = own[w];
  __syncwarp();
  for (unsigned n = 0; n < 2; ++n)
    for (unsigned t = 0; t < 4; ++t)
      for (unsigned w = 0; w < 2; ++w) {
        const unsigned bits = words[(column + n) * 4 + t][4 + w];
        sums.upper[n] += __popc(words[row * 4 + t][w] & bits);
        sums.lower[n] += __popc(words[row * 4 + t][2 + w] & bits);
      }
  __syncwarp();
}
#else
template <int>
AUTOTUNE_DEVICE void add_bit_product(BitSums& sums, const BitRows& a, const BitColumns& b) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums.upper[0]), "+r"(sums.upper[1]), "+r"(sums.lower[0]), "+r"(sums.lower[1])
      : "r"(a.upper[0]), "r"(a.lower[0]), "r"(a.upper[1]), "r"(a.lower[1]), "r"(b.word[0]), "r"(b.word[1]));
}
#endif

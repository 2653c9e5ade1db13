// KING-robust kinship of all pairs of people, and the counts of shared genotypes that it is made of.
// (Manichaikul and others: Robust relationship inference in genome-wide association studies, Bioinformatics 26, 2010,
// equation 9; for pairs from one family or from several.)
//
// genotypes is (people, packed variants). A value of genotypes holds several variants; the layout pads the last one
// with zeros, and nothing below counts a variant of which two people are homozygous for the same allele.
#include "autotune/array.cuh"
#include "autotune/packing.cuh"

enum class Output { kinship, counts };
enum class Pairs { all, triangle };

struct IbsCounts {
  int ibs0, het_het, het_hom, hom_het, missing;
  // As seen from the other person.
  AUTOTUNE_DEVICE IbsCounts mirrored() const { return {ibs0, het_het, hom_het, het_hom, missing}; }
};

// The calls of one person in one word: a bit is set for each variant with that genotype.
struct Calls {
  unsigned first, het, second, missing;
};

template <class Packing>
AUTOTUNE_DEVICE Calls calls_of(const typename Packing::Word& word) {
  const unsigned every = Packing::differ(Packing::filled(0), Packing::filled(3));
  const auto with = [&](unsigned genotype) { return every & ~Packing::differ(word, Packing::filled(genotype)); };
  return {with(2), with(1), with(0), with(3)};
}

template <class Value>
struct Item {
  Calls calls[Value::words];
  AUTOTUNE_DEVICE explicit Item(const Value& value) {
#pragma unroll
    for (int w = 0; w < Value::words; ++w) calls[w] = calls_of<typename Value::packing>(value.word[w]);
  }
};

// Adds the variants of one item to the counts of a pair.
template <class Policy, class Value>
AUTOTUNE_DEVICE void add(IbsCounts& counts, const Item<Value>& i, const Item<Value>& j) {
  using Packing = typename Value::packing;
#pragma unroll
  for (int w = 0; w < Value::words; ++w) {
    const Calls &a = i.calls[w], &b = j.calls[w];
    counts.ibs0 += Packing::count((a.first & b.second) | (a.second & b.first));
    counts.het_het += Packing::count(a.het & b.het);
    counts.het_hom += Packing::count(a.het & (b.first | b.second));
    counts.hom_het += Packing::count((a.first | a.second) & b.het);
    if constexpr (Policy::output == Output::counts) counts.missing += Packing::count(a.missing | b.missing);
  }
}

// Squared differences of a pair are 4 where the two have no allele in common and 1 where one is heterozygous.
AUTOTUNE_DEVICE float kinship_of(const IbsCounts& counts) {
  const double squares = 4.0 * counts.ibs0 + counts.het_hom + counts.hom_het;
  const double heterozygous = static_cast<double>(counts.het_het) + min(counts.het_hom, counts.hom_het);
  return static_cast<float>(0.5 - squares / (4.0 * heterozygous));
}

// The square of pairs that a block counts, in units of its side: of a triangle those on and above the diagonal, column
// by column.
struct Square {
  unsigned down, across;
};

template <class Policy>
AUTOTUNE_DEVICE Square square_of(unsigned block, unsigned squares) {
  if constexpr (Policy::pairs == Pairs::triangle) {
    unsigned across = static_cast<unsigned>((sqrtf(8.0f * block + 1.0f) - 1.0f) * 0.5f);
    while (across * (across + 1) / 2 > block) --across;  // where the root was rounded
    while ((across + 1) * (across + 2) / 2 <= block) ++across;
    return {block - across * (across + 1) / 2, across};
  } else {
    return {block / squares, block % squares};
  }
}

template <class Policy>
AUTOTUNE_DEVICE void store(const IbsCounts& pair, typename Policy::kinship kinship, typename Policy::counts counts,
                           unsigned i, unsigned j) {
  kinship.store(kinship_of(pair), i, j);
  if constexpr (Policy::output == Output::counts)
    counts.store(pair, i, j);
  else if (i == 0 && j == 0)
    counts.store({}, 0, 0);
}

// A thread counts tile x tile pairs in registers. Its rows and columns are a block apart, so that the loads and stores
// of a warp are contiguous.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    king(typename Policy::genotypes genotypes, typename Policy::kinship kinship, typename Policy::counts counts) {
  using Value = typename Policy::genotypes::value_type;
  constexpr int tile = Policy::tile, lanes = 16, rows = Policy::block_size / lanes;
  static_assert(Policy::pairs == Pairs::all || rows == lanes, "half of the pairs are counted in squares");
  const unsigned people = genotypes.extent(0);
  const Square square = square_of<Policy>(blockIdx.x, (people + lanes * tile - 1) / (lanes * tile));
  const unsigned first_row = square.down * (rows * tile) + threadIdx.x / lanes;
  const unsigned first_column = square.across * (lanes * tile) + threadIdx.x % lanes;
  IbsCounts pairs[tile][tile] = {};
  for (unsigned k = 0; k < genotypes.extent(1); ++k) {
    Value row[tile], column[tile];
#pragma unroll
    for (int t = 0; t < tile; ++t) {  // past the edge: read the last person again, store nothing
      row[t] = genotypes.load(min(first_row + t * rows, people - 1), k);
      column[t] = genotypes.load(min(first_column + t * lanes, people - 1), k);
    }
#pragma unroll
    for (int r = 0; r < tile; ++r) {
      const Item<Value> i(row[r]);
#pragma unroll
      for (int c = 0; c < tile; ++c) add<Policy>(pairs[r][c], i, Item<Value>(column[c]));
    }
  }
#pragma unroll
  for (int r = 0; r < tile; ++r)
#pragma unroll
    for (int c = 0; c < tile; ++c) {
      const unsigned i = first_row + r * rows, j = first_column + c * lanes;
      if (i >= people || j >= people) continue;
      store<Policy>(pairs[r][c], kinship, counts, i, j);
      if (Policy::pairs == Pairs::triangle && square.down != square.across)
        store<Policy>(pairs[r][c].mirrored(), kinship, counts, j, i);
    }
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

// Scores of single points, known as well as it takes to tell them apart.
#pragma once
#include "eager.cuh"

// A point whose score is within `margin` of `score`; exact, which is to say as eager updates have it, when that is 0.
struct Candidate {
  double score;
  float margin;
  unsigned index;

  AUTOTUNE_DEVICE static Candidate none() { return {infinity(), 0, nowhere}; }
  AUTOTUNE_DEVICE double lower() const { return score - margin; }
  AUTOTUNE_DEVICE double upper() const { return score + margin; }
};

template <class T>
AUTOTUNE_DEVICE T warp_sum(T mine) {
  for (int lanes = 16; lanes > 0; lanes /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, lanes);
  return mine;
}

// Points are weighed for an ion of `charge` after `count` ions, of which `ions` has the first `stored`, and `last` is
// the one more there may be. The lanes of a warp take part in every call. `updated` counts, in the first lane, the
// terms that were summed.
template <class Policy>
struct Scoring {
  const typename Policy::potential& potential;
  const typename Policy::ions& ions;
  Ion last;
  unsigned stored, count;
  double charge, spacing2;
  unsigned long long& updated;

  AUTOTUNE_DEVICE double start(unsigned index) const {
    const unsigned columns = potential.extent(2), line = index / columns;
    return potential.load(line / potential.extent(1), line % potential.extent(1), index % columns);
  }
  AUTOTUNE_DEVICE Ion ion(unsigned number) const { return number < stored ? ions.load(number) : last; }
  AUTOTUNE_DEVICE void note() const {
    if (threadIdx.x % 32 == 0) updated += count;
  }

  // Each term by a Newton step from float32, off by less than 1e-12 of it, and summed in any order. The other bound is
  // on the rounding of this sum and of the one in order.
  AUTOTUNE_DEVICE Candidate close(unsigned index) const {
    const Point there = Point::at(potential, index);
    const double from = start(index);
    double sum = 0;
    float size = 0;
#pragma unroll 8
    for (unsigned i = threadIdx.x % 32; i < count; i += 32) {
      const Ion one = ion(i);
      const double square = spacing2 * one.point.squared_distance(there);
      const double guess = rsqrtf(static_cast<float>(square));
      const double term = one.charge == 0 ? 0 : one.charge * (guess * (1.5 - 0.5 * square * (guess * guess)));
      sum += term;
      size += fabsf(static_cast<float>(term));
    }
    note();
    size = warp_sum(size);
    sum = from + warp_sum(sum);
    const float rounding = 1e-15f * static_cast<float>(count) * (static_cast<float>(fabs(from)) + size);
    return {score_of(sum, charge), 1e-12f * size + rounding, index};
  }

  // Terms in float64 by all lanes at once, added in the order of eager updates.
  AUTOTUNE_DEVICE Candidate exact(const Candidate& candidate) const {
    if (candidate.margin == 0) return candidate;
    const Point there = Point::at(potential, candidate.index);
    double sum = start(candidate.index);
    for (unsigned first = 0; first < count; first += 32) {
      const unsigned i = first + threadIdx.x % 32;
      double term = 0;
      if (i < count) {
        const Ion one = ion(i);
        if (one.charge != 0) term = one.term(there, spacing2);
      }
#pragma unroll 8
      for (int lane = 0; lane < 32; ++lane) sum += __shfl_sync(0xffffffffu, term, lane);
    }
    note();
    return {score_of(sum, charge), 0, candidate.index};
  }

  // Of equal points the first.
  AUTOTUNE_DEVICE Candidate better(const Candidate& one, const Candidate& other) const {
    if (one.index == nowhere || other.upper() < one.lower()) return other;
    if (other.index == nowhere || one.upper() < other.lower()) return one;
    const Candidate a = exact(one), b = exact(other);
    return b.score < a.score || (b.score == a.score && b.index < a.index) ? b : a;
  }

  // The best of `candidates` that candidate(n) gives.
  template <class Get>
  AUTOTUNE_DEVICE Candidate best_of(unsigned candidates, Get candidate) const {
    const unsigned lane = threadIdx.x % 32;
    double most = infinity();
    for (unsigned n = lane; n < candidates; n += 32) most = min(most, candidate(n).upper());
    for (int lanes = 16; lanes > 0; lanes /= 2) most = min(most, __shfl_xor_sync(0xffffffffu, most, lanes));
    Candidate best = Candidate::none();
    for (unsigned first = 0; first < candidates; first += 32) {
      const Candidate mine = first + lane < candidates ? candidate(first + lane) : Candidate::none();
      unsigned contending = __ballot_sync(0xffffffffu, mine.index != nowhere && mine.lower() <= most);
      for (; contending != 0; contending &= contending - 1) {
        const int from = __ffs(static_cast<int>(contending)) - 1;
        best = better(best, {__shfl_sync(0xffffffffu, mine.score, from), __shfl_sync(0xffffffffu, mine.margin, from),
                             __shfl_sync(0xffffffffu, mine.index, from)});
      }
    }
    return best;
  }
};

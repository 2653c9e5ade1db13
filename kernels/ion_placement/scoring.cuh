// Scores of single points, known as well as it takes to tell them apart.
#pragma once
#include "autotune/warp.cuh"
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

// Points are weighed for an ion of `charge` after `count` ions, of which `ions` has the first `stored`, and `last` is
// the one more there may be. All threads of the block take part in closest(), the lanes of a warp in every other call.
// `updated` counts the terms that were summed.
template <class Policy>
struct Scoring {
  static constexpr unsigned threads = Policy::block_size, warps = threads / 32;
  static constexpr unsigned at_once = 4;  // terms of a thread that do not wait for each other
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
  // Loaded in any case, so that the loads of a loop need not wait for each other.
  AUTOTUNE_DEVICE Ion ion(unsigned number) const {
    const Ion one = ions.load(min(number, ions.extent(0) - 1));
    return number < stored ? one : last;
  }

  // The better of `best` and the points of `waits`, of which there are `waiting`; known to the first warp. A point's
  // terms are shared by as many warps as there are for each point.
  AUTOTUNE_DEVICE Candidate closest(Candidate best, const unsigned* waits, unsigned waiting) const {
    __shared__ Sum of_warp[warps];
    for (unsigned first = 0; first < waiting; first += warps) {
      const unsigned many = min(warps, waiting - first), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
      unsigned apart = 1;  // a point's warps are so far apart
      while (apart < many) apart *= 2;
      if (warp % apart < many) {
        const Sum mine = share(waits[first + warp % apart], warp / apart * 32 + lane, warps / apart * 32);
        if (lane == 0) of_warp[warp] = mine;
      }
      __syncthreads();
      if (warp == 0) {
        const Candidate one = lane < many ? close(waits[first + lane], of_warp, lane, apart) : Candidate::none();
        best = better(best, best_of(one));
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) updated += waiting * 1ull * count;
    return best;
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
    if (threadIdx.x % 32 == 0) updated += count;
    return {score_of(sum, charge), 0, candidate.index};
  }

  // Of equal points the first.
  AUTOTUNE_DEVICE Candidate better(const Candidate& one, const Candidate& other) const {
    if (one.index == nowhere || other.upper() < one.lower()) return other;
    if (other.index == nowhere || one.upper() < other.lower()) return one;
    const Candidate a = exact(one), b = exact(other);
    return b.score < a.score || (b.score == a.score && b.index < a.index) ? b : a;
  }

  // The best of the lanes' candidates, known to all of them.
  AUTOTUNE_DEVICE Candidate best_of(const Candidate& mine) const {
    const double most = autotune::warp::min(mine.upper());
    Candidate best = Candidate::none();
    unsigned contending = __ballot_sync(0xffffffffu, mine.index != nowhere && mine.lower() <= most);
    for (; contending != 0; contending &= contending - 1) {
      const int from = __ffs(static_cast<int>(contending)) - 1;
      best = better(best, {__shfl_sync(0xffffffffu, mine.score, from), __shfl_sync(0xffffffffu, mine.margin, from),
                           __shfl_sync(0xffffffffu, mine.index, from)});
    }
    return best;
  }

 private:
  struct Sum {
    double terms;
    float sizes;
  };

  // A warp's share of a point's terms: every `step`-th, from `begin` of each lane on. Each by a Newton step from
  // float32, off by less than 1e-12 of it.
  AUTOTUNE_DEVICE Sum share(unsigned index, unsigned begin, unsigned step) const {
    const Point there = Point::at(potential, index);
    Sum sum = {0, 0};
    for (unsigned first = begin; first < count; first += at_once * step) {
#pragma unroll
      for (unsigned n = 0; n < at_once; ++n) {
        const unsigned i = first + n * step;
        const Ion one = ion(i);
        const double square = spacing2 * one.point.squared_distance(there);
        const double guess = rsqrtf(static_cast<float>(square));
        const double term = one.charge * (guess * (1.5 - 0.5 * square * (guess * guess)));
        const bool counts = i < count && one.charge != 0;
        sum.terms += counts ? term : 0;
        sum.sizes += counts ? fabsf(static_cast<float>(term)) : 0;
      }
    }
    return {autotune::warp::sum(sum.terms), autotune::warp::sum(sum.sizes)};
  }

  // From the shares of the warps `first`, `first + apart`, ..., which may be summed in any order: the other bound is on
  // the rounding of this sum and of the one in order.
  AUTOTUNE_DEVICE Candidate close(unsigned index, const Sum (&of_warp)[warps], unsigned first, unsigned apart) const {
    const double from = start(index);
    Sum sum = {0, 0};
    for (unsigned warp = first; warp < warps; warp += apart) {
      sum.terms += of_warp[warp].terms;
      sum.sizes += of_warp[warp].sizes;
    }
    const float rounding = 1e-15f * static_cast<float>(count) * (static_cast<float>(fabs(from)) + sum.sizes);
    return {score_of(from + sum.terms, charge), 1e-12f * sum.sizes + rounding, index};
  }
};

// From how often each mass occurs to the result: the list, or the pairs.
#pragma once
#include "counting.cuh"
#include "eviction.cuh"

// Of the list, that a warp writes and `starts` has the first mass of: 256 at least, as in family.yaml.
template <class Policy>
constexpr unsigned run_outputs = 32 * Policy::outputs_per_thread;

// A mass of which there are `here` values, behind `before` smaller ones: where its values end, and the runs it begins.
template <class Policy>
AUTOTUNE_DEVICE void store_end(const typename Policy::ends& ends, const typename Policy::starts& starts, unsigned mass,
                               unsigned before, unsigned here) {
  constexpr unsigned outputs = run_outputs<Policy>;
  if (mass >= ends.extent(0)) return;
  to_keep<Policy>(ends).store(before + here, mass);
  if constexpr (Policy::find == Find::table)
    for (unsigned run = (before + outputs - 1) / outputs; run < starts.extent(0) && run * outputs < before + here;
         ++run)
      to_keep<Policy>(starts).store(mass, run);
}

// ends[m] = how many values of the list are at most m.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    offsets(typename Policy::counts counts, typename Policy::field field, typename Policy::ring ring,
            typename Policy::sums sums, typename Policy::ends ends, typename Policy::starts starts, unsigned total) {
  if constexpr (Policy::finish == Finish::counting && Policy::output == Output::list && Policy::scan == Scan::passes) {
    const Occurrences<Policy> occurrences{counts, field, ring.extent(0) / 2, total};
    unsigned before = sums.load(blockIdx.x), whole;
    for (unsigned bin = 0; bin < tile_bins; bin += Policy::block_size, before += whole) {
      const unsigned mass = blockIdx.x * tile_bins + bin + threadIdx.x, here = occurrences(mass);
      store_end<Policy>(ends, starts, mass, before + autotune::block::exclusive_sum(here, whole), here);
    }
  }
}

// The masses that occur with how often they do, ascending; behind the last of them, 0 and 0.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    pair_up(typename Policy::counts counts, typename Policy::field field, typename Policy::ring ring,
            typename Policy::sums sums, typename Policy::spectrum spectrum, unsigned total) {
  if constexpr (Policy::finish == Finish::counting && Policy::output == Output::pairs) {
    const Occurrences<Policy> occurrences{counts, field, ring.extent(0) / 2, total};
    static_assert(Policy::spectrum::value_type::words == 2, "a pair a store");
    const unsigned found = sums.load(total / tile_bins + 1);
    unsigned before = sums.load(blockIdx.x), whole;
    for (unsigned bin = 0; bin < tile_bins; bin += Policy::block_size, before += whole) {
      const unsigned mass = blockIdx.x * tile_bins + bin + threadIdx.x;
      const unsigned count = occurrences(mass);
      const unsigned place = before + autotune::block::exclusive_sum(count > 0 ? 1u : 0u, whole);
      if (count) spectrum.store({{mass, count}}, place);
      if (mass >= found && mass <= total) spectrum.store({{0, 0}}, mass);
    }
  }
}

// The first mass in [low, high] with ends[mass] > output, or high.
template <class Ends>
AUTOTUNE_DEVICE unsigned mass_between(const Ends& ends, unsigned low, unsigned high, unsigned output) {
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    if (ends.load(middle) <= output)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The first mass >= low with ends[mass] > output: it is near, so steps double until it is passed.
template <class Ends>
AUTOTUNE_DEVICE unsigned mass_after(const Ends& ends, unsigned low, unsigned output) {
  const unsigned last = ends.extent(0) - 1;
  unsigned step = 1;
  while (low < last && ends.load(min(low + step, last) - 1) <= output) {
    low = min(low + step, last);
    step *= 2;
  }
  return mass_between(ends, low, min(low + step - 1, last), output);
}

// A vector of the list from the output `first` on, which lies in `mass`; `end` is the end of that, `next` of the mass
// behind it. What is no output is 0.
template <class Vector, class Ends>
AUTOTUNE_DEVICE Vector vector_of(const Ends& ends, unsigned first, unsigned outputs, unsigned& mass, unsigned& end,
                                 unsigned next) {
  Vector vector;
#pragma unroll
  for (unsigned k = 0; k < Vector::words; ++k) {
    const unsigned output = first + k;
    if (output >= end && end < outputs) {
      if (output < next) {
        ++mass;
        end = next;
      } else {
        mass = mass_after(ends, mass + 1, output);
        end = ends.load(mass);
      }
    }
    vector.word[k] = output < outputs ? mass : 0;
  }
  return vector;
}

// A warp's vectors from `begin` on. Each thread searches for its first mass.
template <class Policy>
AUTOTUNE_DEVICE void expand_by_search(const typename Policy::ends& ends, const typename Policy::spectrum& spectrum,
                                      unsigned begin, unsigned rounds) {
  using Vector = typename Policy::spectrum::value_type;
  const unsigned first = begin + threadIdx.x % 32, last = ends.extent(0) - 1, outputs = ends.load(last);
  if (first >= spectrum.extent(0)) return;
  unsigned mass = mass_between(ends, 0, last, first * Vector::words), end = ends.load(mass);
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned place = first + round * 32;
    if (place >= spectrum.extent(0)) return;
    spectrum.store(vector_of<Vector>(ends, place * Vector::words, outputs, mass, end, 0), place);
  }
}

// The warp holds 32 ends from the first mass of its run on, and in each round every thread finds its own among them.
template <class Policy, class Ends, class Starts, class Spectrum>
AUTOTUNE_DEVICE void expand_by_table(const Ends& ends, const Starts& starts, const Spectrum& spectrum, unsigned begin,
                                     unsigned rounds) {
  using Vector = typename Policy::spectrum::value_type;
  constexpr unsigned all_lanes = 0xffffffffu;
  const unsigned lane = threadIdx.x % 32, last = ends.extent(0) - 1, outputs = ends.load(last);
  if (begin >= spectrum.extent(0)) return;
  const unsigned low = starts.load(begin * Vector::words / run_outputs<Policy>),
                 held = ends.load(min(low + lane, last));
#pragma unroll
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned place = begin + round * 32 + lane, output = min(place * Vector::words, outputs - 1);
    unsigned ahead = 0;  // ends that are at most `output`, of the first 31
#pragma unroll
    for (unsigned step = 16; step > 0; step /= 2)
      if (__shfl_sync(all_lanes, held, ahead + step - 1) <= output) ahead += step;
    unsigned mass = low + ahead, end = __shfl_sync(all_lanes, held, ahead);
    const unsigned next = __shfl_sync(all_lanes, held, min(ahead + 1, 31u));
    if (end <= output) {
      mass = mass_after(ends, mass + 1, output);
      end = ends.load(mass);
    }
    if (place < spectrum.extent(0))
      spectrum.store(vector_of<Vector>(ends, place * Vector::words, outputs, mass, end, next), place);
  }
}

// The list from its counts. A warp writes a run of vectors, so most stores hold a mass or two.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    expand(typename Policy::ends ends, typename Policy::starts starts, typename Policy::spectrum spectrum) {
  if constexpr (Policy::finish == Finish::counting && Policy::output == Output::list && Policy::scan != Scan::listing) {
    constexpr unsigned rounds = Policy::outputs_per_thread / Policy::spectrum::value_type::words;
    const unsigned begin = (blockIdx.x * Policy::block_size + threadIdx.x) / 32 * rounds * 32;
    if constexpr (Policy::find == Find::search)
      expand_by_search<Policy>(ends, spectrum, begin, rounds);
    else
      expand_by_table<Policy>(to_keep<Policy>(ends), to_keep<Policy>(starts), to_pass<Policy>(spectrum), begin, rounds);
  }
}

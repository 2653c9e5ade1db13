// Reaction and diffusion on a square lattice: fluorescence that a laser beam bleaches and diffusion brings back.
//
// What one step does to a point is in medium.cuh, the tiles that do it in one_step.cuh, register_tile.cuh and
// register_wave.cuh, the observable in record.cuh. family.py says in which order these kernels are launched: survey,
// prepare, advance (once a time block, or once for all of them), finish.
#include "autotune/grid_barrier.cuh"
#include "neighbours.cuh"
#include "one_step.cuh"
#include "register_tile.cuh"
#include "register_wave.cuh"

// A field as pieces of rows with so many points for each thread of a block, all under way at once. Blocks take them in
// order, so that what is read at a time lies side by side in memory: rows a power of two apart would meet in few banks.
constexpr int points_at_once = 4;
struct Pieces {
  int columns, across, count;
  AUTOTUNE_DEVICE Pieces(int rows, int columns_)
      : columns(columns_), across((columns - 1) / width() + 1), count(rows * across) {}
  AUTOTUNE_DEVICE int row(int piece) const { return piece / across; }
  // The thread's point `n` of a piece, which may lie behind the row's end; then `inside` is the last of the row, so
  // that no load waits for a comparison.
  AUTOTUNE_DEVICE int column(int piece, int n) const {
    return piece % across * width() + n * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
  }
  AUTOTUNE_DEVICE int inside(int piece, int n) const { return min(column(piece, n), columns - 1); }

 private:
  static AUTOTUNE_DEVICE int width() { return points_at_once * static_cast<int>(blockDim.x); }
};

// The largest initial concentration: numbers of at least 0 order as their bits do.
template <class Policy>
__global__ void survey(typename Policy::initial initial, typename Policy::peak peak) {
  const int rows = static_cast<int>(initial.extent(0)), columns = static_cast<int>(initial.extent(1));
  const unsigned lane = threadIdx.x % 32;
  const Pieces pieces{rows, columns};
  float most = 0.0f;
  for (int piece = static_cast<int>(blockIdx.x); piece < pieces.count; piece += static_cast<int>(gridDim.x)) {
    const int y = pieces.row(piece);
#pragma unroll
    for (int n = 0; n < points_at_once; ++n) most = max(most, initial.load(y, pieces.inside(piece, n)));
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) most = max(most, __shfl_down_sync(0xffffffffu, most, lanes));
  if (lane == 0) atomicMax(&autotune::element(peak, 0), __float_as_uint(most));
}

// The field at time 0 and its F; the factors of a point's own value, where they are stored.
template <class Policy>
__global__ void prepare(typename Policy::prepare_arguments a) {
  using Number = Real<Policy>;
  const int rows = static_cast<int>(a.initial.extent(0)), columns = static_cast<int>(a.initial.extent(1));
  const Concentration<Policy> field{a.field_even, rows, columns};
  const typename FieldOf<typename Policy::own, Number, autotune::Global, true>::type owns{a.own, rows, columns};
  const Rates<Policy> rates{a.diffusion, a.bleaching};
  const double per_unit = power_of_two(quantum_exponent(a.peak.load(0), 1ull * rows * columns));
  const Pieces pieces{rows, columns};
  unsigned long long sum = 0;
  Rectangle looks;
  for (int piece = static_cast<int>(blockIdx.x); piece < pieces.count; piece += static_cast<int>(gridDim.x)) {
    const int y = pieces.row(piece);
    float first[points_at_once];
    bool seen[points_at_once];
#pragma unroll
    for (int n = 0; n < points_at_once; ++n) {
      const int x = pieces.inside(piece, n);
      first[n] = a.initial.load(y, x);
      seen[n] = a.detector.load(y, x) != 0;
    }
#pragma unroll
    for (int n = 0; n < points_at_once; ++n) {
      const int x = pieces.column(piece, n);
      if (x >= columns) break;
      const Number c = static_cast<Number>(first[n]) + Number{0};  // no -0: a sign would be a mark
      field.set_point(c, y, x);
      if constexpr (Policy::boundary == Boundary::ghost) {
        if (y == 0) field.set_point(c, -1, x);
        if (y == rows - 1) field.set_point(c, rows, x);
        if (x == 0) field.set_point(c, y, -1);
        if (x == columns - 1) field.set_point(c, y, columns);
      }
      if (seen[n]) {
        sum += quanta(c, per_unit);
        looks.add(rows - y, y + 1, columns - x, x + 1);
      }
      if constexpr (Policy::coefficient == Coefficient::stored) {
        Number value;
        if constexpr (Policy::beam_shape == BeamShape::any)
          value = fused(-rates.bleaching, static_cast<Number>(a.beam.load(y, x)), rates.still);
        else
          value = fused(-(rates.bleaching * static_cast<Number>(a.beam_columns.load(x))),
                        static_cast<Number>(a.beam_rows.load(y)), rates.still);
        owns.set_point(value, y, x);
      }
    }
  }
  add_to_sample<256>(a.sums, 0, sum);
  looks.merge_into(a.watched);
}

template <class Policy>
constexpr bool in_registers = Policy::field_memory == FieldMemory::register_tile;
template <class Policy>
constexpr bool in_wave = Policy::field_memory == FieldMemory::register_wave;

// What a block of advance makes of the field, and its shared memory; family.yaml reads them.
struct Tiling {
  int width, height;
  unsigned shared_bytes;
};
template <class Policy>
AUTOTUNE_DEVICE constexpr Tiling tiling() {
  if constexpr (in_registers<Policy>) {
    using Tile = RegisterTile<Policy>;
    return {Tile::Place::useful_x, Tile::Place::useful_y, Tile::shared_bytes};
  } else if constexpr (in_wave<Policy>) {
    using Tile = RegisterWave<Policy>;
    return {Tile::Place::useful_x, Tile::Place::useful_y, Tile::shared_bytes};
  } else {
    using Tile = OneStep<Policy, Concentration<Policy>>;
    return {Tile::width, Tile::height, summed_bytes<Policy>};
  }
}

// Tiles of the field, one a block.
template <class Policy>
AUTOTUNE_DEVICE unsigned tile_count(int rows, int columns) {
  constexpr int width = tiling<Policy>().width, height = tiling<Policy>().height;
  return static_cast<unsigned>((columns + width - 1) / width) * static_cast<unsigned>((rows + height - 1) / height);
}

// One tile by `steps` steps; its quanta when they are `sampled`. From is a Concentration or a view of one.
template <class Policy, class From>
AUTOTUNE_DEVICE unsigned long long advance_tile(const Surroundings<Policy>& around, const From& from,
                                                const Concentration<Policy>& to, unsigned tile, unsigned steps,
                                                bool sampled) {
  if constexpr (in_registers<Policy>) {
    RegisterTile<Policy> registers{around, tile};
    registers.load(from);
    registers.advance(steps);
    registers.store(to);
    return sampled ? registers.detected(registers.seen()) : 0;
  } else if constexpr (in_wave<Policy>) {
    return RegisterWave<Policy>{around, tile}.advance(from, to, static_cast<int>(steps), sampled);
  } else if constexpr (Policy::field_memory == FieldMemory::readonly) {
    const Field<Real<Policy>, autotune::ReadOnly> unchanged{from};
    return OneStep<Policy, Field<Real<Policy>, autotune::ReadOnly>>{around, unchanged}.advance(tile, to, sampled);
  } else {
    return OneStep<Policy, From>{around, from}.advance(tile, to, sampled);
  }
}

// What an ordinary launch does: every tile by `steps` steps, and sample number `sample` after it (0: none).
template <class Policy, class From, class Sums>
AUTOTUNE_DEVICE void advance_once(const Surroundings<Policy>& around, const From& from, const Concentration<Policy>& to,
                                  const Sums& sums, unsigned steps, unsigned sample) {
  const unsigned tiles = tile_count<Policy>(around.rows, around.columns);
  unsigned long long sum = 0;
  for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    sum += advance_tile<Policy>(around, from, to, tile, steps, sample != 0);
  if (sample) add_to_sample<Policy::block_size>(sums, sample, sum);
}

// Steps until the next time block or sample ends.
template <class Policy>
AUTOTUNE_DEVICE unsigned next_steps(unsigned done, unsigned step_count, unsigned interval) {
  return min(min(static_cast<unsigned>(Policy::time_block), step_count - done), interval - done % interval);
}

// How many time blocks next_steps makes of all steps: where the result lies follows from it.
template <class Policy>
AUTOTUNE_DEVICE unsigned block_count(unsigned step_count, unsigned interval) {
  constexpr unsigned most = Policy::time_block;
  return step_count / interval * ((interval + most - 1) / most) + (step_count % interval + most - 1) / most;
}

// All steps with a block for every tile: tiles stay in registers from the first step to the last, and only rims go
// through memory, with a mark or not. A sample needs no exchange. Returns when no one reads rims any more.
template <bool MARKED, class Policy, class Sums>
AUTOTUNE_DEVICE void advance_staying(RegisterTile<Policy>& registers, const Field<Real<Policy>>& even,
                                     const Field<Real<Policy>>& odd, const Sums& sums, const Neighbours& neighbours,
                                     unsigned* arrived, unsigned step_count, unsigned interval) {
  const auto seen = registers.seen();
  const bool sees = registers.any(seen);
  const int rim = registers.rim_rows(), halo = registers.halo_rows();
  const auto meet = [&](unsigned number) {
    if constexpr (Policy::launch == Launch::neighbours)
      neighbours.meet(number);
    else
      autotune::grid_barrier(arrived);
  };
  if constexpr (MARKED) {
    registers.keep_places(even);
    registers.store_rows(odd, rim);  // so that both fields are there without marks
    meet(1);
  }
  for (unsigned done = 0, number = 1;; ++number) {
    const unsigned end = min(done + static_cast<unsigned>(Policy::time_block), step_count);
    while (done < end) {
      const unsigned steps = min(end - done, interval - done % interval);
      registers.advance(steps);
      done += steps;
      if (sees && done % interval == 0) add_of_warp(sums, done / interval, registers.detected(seen));
    }
    const Field<Real<Policy>> rims = one_of(even, odd, number % 2);
    if constexpr (MARKED) {
      if (done == step_count) break;
      registers.exchange(rims, opaque(rim), opaque(halo), Mark{number});
    } else {
      if (done < step_count) registers.store_rows(rims, opaque(rim));
      meet(number);
      if (done == step_count) return;
      registers.load_rows(rims, opaque(halo));
    }
  }
  meet(2);
}

// All steps in one cooperative launch.
template <class Policy, class Sums>
AUTOTUNE_DEVICE void advance_all(const Surroundings<Policy>& around, const Concentration<Policy>& even,
                                 const Concentration<Policy>& odd, const Sums& sums, unsigned* arrived, unsigned* shown,
                                 unsigned step_count, unsigned interval) {
  if constexpr (in_registers<Policy>) {
    if (gridDim.x == tile_count<Policy>(around.rows, around.columns)) {
      using Tile = RegisterTile<Policy>;
      const Neighbours neighbours{shown, (around.columns + Tile::Place::useful_x - 1u) / Tile::Place::useful_x};
      Tile registers{around, blockIdx.x};
      registers.load(even);
      if (Tile::can_mark && Tile::marks(around))
        advance_staying<Tile::can_mark>(registers, even, odd, sums, neighbours, arrived, step_count, interval);
      else
        advance_staying<false>(registers, even, odd, sums, neighbours, arrived, step_count, interval);
      registers.store(one_of(even, odd, block_count<Policy>(step_count, interval) % 2));
      return;
    }
  }
  unsigned done = 0, source = 0;
  while (done < step_count) {
    const unsigned steps = next_steps<Policy>(done, step_count, interval);
    done += steps;
    const unsigned sample = done % interval ? 0 : done / interval;
    advance_once<Policy>(around, one_of(even, odd, source), one_of(even, odd, source ^ 1), sums, steps, sample);
    source ^= 1;
    if (done < step_count) autotune::grid_barrier(arrived);
  }
}

// step_count steps from the field `source` (0: even, 1: odd) to the other one; with a persistent launch from the even
// one to the one that the number of time blocks leads to. `sample` counts from what `cycle` has.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size, Policy::min_blocks)
    advance(typename Policy::field_even field_even, typename Policy::field_odd field_odd,
            typename Policy::even_view even_view, typename Policy::odd_view odd_view, typename Policy::own own,
            typename Policy::beam_columns beam_columns, typename Policy::beam_rows beam_rows,
            typename Policy::open_sides open_sides, typename Policy::detector detector,
            typename Policy::watched watched, typename Policy::peak peak, typename Policy::sums sums,
            typename Policy::cycle cycle, typename Policy::barrier barrier, typename Policy::shown shown,
            double diffusion, double bleaching, float beam_rate, float centre_x, float centre_y, unsigned step_count,
            unsigned interval, unsigned sample_index, unsigned source) {
  using Number = Real<Policy>;
  const int rows = static_cast<int>(open_sides.extent(0)), columns = static_cast<int>(open_sides.extent(1));
  const Surroundings<Policy> around{{Rates<Policy>{diffusion, bleaching},
                                     {own, rows, columns},
                                     beam_columns,
                                     beam_rows,
                                     beam_rate,
                                     centre_x,
                                     centre_y},
                                    open_sides,
                                    detector,
                                    watched,
                                    rows,
                                    columns,
                                    power_of_two(quantum_exponent(peak.load(0), 1ull * rows * columns))};
  const Concentration<Policy> even{field_even, rows, columns}, odd{field_odd, rows, columns};
  if constexpr (Policy::launch == Launch::persistent || Policy::launch == Launch::neighbours) {
    advance_all<Policy>(around, even, odd, sums, &autotune::element(barrier, 0), &autotune::element(shown, 0),
                        step_count, interval);
  } else {
    const unsigned sample = sample_index ? sample_index + cycle.load(0) : 0;
    const Concentration<Policy> to = one_of(even, odd, source ^ 1);
    if constexpr (Policy::field_memory == FieldMemory::texture) {
      const auto view = source ? odd_view : even_view;
      const Viewed<Number, typename Policy::even_view> from{view};
      advance_once<Policy>(around, from, to, sums, step_count, sample);
    } else {
      advance_once<Policy>(around, one_of(even, odd, source), to, sums, step_count, sample);
    }
  }
}

// After a cycle of launches: the samples it took are behind.
template <class Policy>
__global__ void end_cycle(typename Policy::cycle cycle, unsigned sample_index) {
  if (threadIdx.x == 0) cycle.store(cycle.load(0) + sample_index, 0);
}

template <class Policy>
__global__ void finish(typename Policy::field_even field_even, typename Policy::field_odd field_odd,
                       typename Policy::sums sums, typename Policy::peak peak,
                       typename Policy::concentration concentration, typename Policy::fluorescence fluorescence,
                       unsigned source) {
  const int rows = static_cast<int>(concentration.extent(0)), columns = static_cast<int>(concentration.extent(1));
  const Concentration<Policy> even{field_even, rows, columns}, odd{field_odd, rows, columns};
  const Concentration<Policy> field = one_of(even, odd, source);
  const Pieces pieces{rows, columns};
  for (int piece = static_cast<int>(blockIdx.x); piece < pieces.count; piece += static_cast<int>(gridDim.x)) {
    const int y = pieces.row(piece);
    double last[points_at_once];
#pragma unroll
    for (int n = 0; n < points_at_once; ++n) last[n] = static_cast<double>(field.point(y, pieces.inside(piece, n)));
#pragma unroll
    for (int n = 0; n < points_at_once; ++n) {
      const int x = pieces.column(piece, n);
      if (x < columns) concentration.store(last[n], y, x);
    }
  }
  const double unit = power_of_two(-quantum_exponent(peak.load(0), 1ull * rows * columns));
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned n = first; n < fluorescence.extent(0); n += gridDim.x * blockDim.x)
    fluorescence.store(static_cast<double>(sums.load(n)) * unit, n);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

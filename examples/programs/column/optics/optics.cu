// Optical depths by interpolation in pressure and temperature, as gas optics of RRTMGP look them up (Pincus, Mlawer,
// Delamere 2019), for one absorber.
#include "autotune/array.cuh"

constexpr unsigned threads = 128;  // of a block, as in family.yaml

enum class Lanes { levels, columns };

// The entry before a coordinate in entries, and how far behind it that lies; within the table.
struct Entry {
  unsigned before;
  float share;
};
AUTOTUNE_DEVICE Entry entry_of(float coordinate, unsigned entries) {
  const float inside = fminf(fmaxf(coordinate, 0), entries - 1.001f);
  const unsigned before = static_cast<unsigned>(inside);
  return {before, inside - before};
}

template <class Policy>
__global__ void __launch_bounds__(threads)
    optics(typename Policy::pressure pressure, typename Policy::path path, typename Policy::temperature temperature,
           typename Policy::table table, typename Policy::depth depth, float log_top, float log_step, float cold,
           float warm_step) {
  const unsigned thread = blockIdx.x * threads + threadIdx.x;
  const unsigned columns = pressure.extent(0), levels = pressure.extent(1);
  if (thread >= columns * levels) return;
  const unsigned column = Policy::lanes == Lanes::levels ? thread / levels : thread % columns;
  const unsigned level = Policy::lanes == Lanes::levels ? thread % levels : thread / columns;
  const Entry p = entry_of((logf(pressure.load(column, level)) - log_top) / log_step, table.extent(1));
  const Entry t = entry_of((temperature.load(column, level) - cold) / warm_step, table.extent(2));
  const float way = path.load(column, level);
  for (unsigned point = 0; point < table.extent(0); ++point) {
    const float high =
        (1 - t.share) * table.load(point, p.before, t.before) + t.share * table.load(point, p.before, t.before + 1);
    const float low = (1 - t.share) * table.load(point, p.before + 1, t.before) +
                      t.share * table.load(point, p.before + 1, t.before + 1);
    depth.store(way * ((1 - p.share) * high + p.share * low), point, column, level);
  }
}

// Heating by a flux that changes from boundary to boundary, and implicit diffusion along the column, at whose lower end
// is the ground. The tridiagonal systems are solved by parallel cyclic reduction (Hockney 1965), a thread a layer. A
// block reads its columns before it writes them: input and output may be the same array.
#include "autotune/array.cuh"
#include "autotune/shared.cuh"

constexpr float heat_capacity = 1004;  // J/(kg K)

struct Line {
  float below, above, right;  // of a line whose diagonal is 1
};

template <class Policy>
__global__ void diffuse(typename Policy::flux flux, typename Policy::ground ground,
                        typename Policy::temperature temperature, typename Policy::temperature_after temperature_after,
                        float dt, float layer_mass, float mixing) {
  constexpr unsigned own = Policy::columns_per_block;
  const unsigned columns = temperature.extent(0), levels = temperature.extent(1);
  const unsigned lane = threadIdx.x, level = threadIdx.y;
  const unsigned column = min(blockIdx.x * own + lane, columns - 1);  // no return: all threads meet at the barriers
  Line* lines = autotune::dynamic_shared<Line>();
  Line* reduced = lines + own * levels;

  const float mixed = dt * mixing, in = flux.load(column, level), out = flux.load(column, level + 1);
  const float warmed = temperature.load(column, level) + dt * (in - out) / (heat_capacity * layer_mass);
  const float above = level + 1 < levels ? mixed : 0, inverse = 1 / (1 + mixed + above);
  const float from_ground = level == 0 ? mixed * ground.load(column) : 0;
  lines[level * own + lane] = {level > 0 ? -mixed * inverse : 0, -above * inverse, (warmed + from_ground) * inverse};
  for (unsigned apart = 1; apart < levels; apart *= 2) {
    __syncthreads();
    const Line none = {}, mine = lines[level * own + lane];
    const Line before = level >= apart ? lines[(level - apart) * own + lane] : none;
    const Line behind = level + apart < levels ? lines[(level + apart) * own + lane] : none;
    const float scale = 1 / (1 - mine.below * before.above - mine.above * behind.below);
    reduced[level * own + lane] = {-mine.below * before.below * scale, -mine.above * behind.above * scale,
                                   (mine.right - mine.below * before.right - mine.above * behind.right) * scale};
    Line* other = lines;
    lines = reduced;
    reduced = other;
  }
  if (blockIdx.x * own + lane < columns) temperature_after.store(lines[level * own + lane].right, column, level);
}

// Multiresolution hash-grid encoding, as one would write it: a thread a point, its levels in turn. Level by level the
// point lies in a cell of a grid; its features are interpolated from those at the cell's eight corners, which are found
// in the level's part of the table by a hash.
extern "C" __global__ void hash_grid(const float3* points, const float2* table, const float* scale,
                                     const unsigned* resolution, unsigned count, unsigned levels, unsigned entries,
                                     float2* encoding) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float3 point = points[i];
  for (unsigned level = 0; level < levels; ++level) {
    const float x = point.x * scale[level] + 0.5f, y = point.y * scale[level] + 0.5f, z = point.z * scale[level] + 0.5f;
    const unsigned cx = x, cy = y, cz = z, side = resolution[level];
    const bool is_dense = static_cast<unsigned long long>(side) * side * side <= entries;
    float2 sum = {0, 0};
    for (unsigned corner = 0; corner < 8; ++corner) {
      const unsigned dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
      const unsigned gx = cx + dx, gy = cy + dy, gz = cz + dz;
      const unsigned place =
          is_dense ? gx + side * (gy + side * gz) : (gx ^ gy * 2654435761u ^ gz * 805459861u) & (entries - 1);
      const float weight = (dx ? x - cx : 1 - (x - cx)) * (dy ? y - cy : 1 - (y - cy)) * (dz ? z - cz : 1 - (z - cz));
      const float2 feature = table[level * entries + place];
      sum.x += weight * feature.x;
      sum.y += weight * feature.y;
    }
    encoding[i * levels + level] = sum;
  }
}

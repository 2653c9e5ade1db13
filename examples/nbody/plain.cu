// Gravitational acceleration of every body, as one would write it: a thread a body, bodies as float4 (x y z mass).
extern "C" __global__ void nbody(const float4* bodies, float* acceleration, int count, float softening) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float4 own = bodies[i];
  float ax = 0, ay = 0, az = 0;
  for (int j = 0; j < count; ++j) {
    const float4 other = bodies[j];
    const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening * softening);
    const float pull = other.w * inverse * inverse * inverse;
    ax += pull * dx;
    ay += pull * dy;
    az += pull * dz;
  }
  acceleration[3 * i] = ax;
  acceleration[3 * i + 1] = ay;
  acceleration[3 * i + 2] = az;
}

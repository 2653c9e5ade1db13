// The study's fourth version as its slides show it: 4,000 atoms in constant memory with dz * dz in place of z, eight
// points a thread a half-warp (or a block's width) apart, the map read and written at the end.
__constant__ float4 atominfo[4000];

template <class Shape>
__global__ void published(float* energygrid, int numatoms, float gridspacing, unsigned width) {
  const unsigned x = blockIdx.x * (blockDim.x * 8) + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const float coorx = gridspacing * x, coory = gridspacing * y, gridspacing_coalesce = gridspacing * blockDim.x;
  float energyvalx1 = 0, energyvalx2 = 0, energyvalx3 = 0, energyvalx4 = 0;
  float energyvalx5 = 0, energyvalx6 = 0, energyvalx7 = 0, energyvalx8 = 0;
  for (int atomid = 0; atomid < numatoms; atomid++) {
    const float dy = coory - atominfo[atomid].y;
    const float dyz2 = dy * dy + atominfo[atomid].z;
    const float dx1 = coorx - atominfo[atomid].x;
    const float dx2 = dx1 + gridspacing_coalesce, dx3 = dx2 + gridspacing_coalesce, dx4 = dx3 + gridspacing_coalesce;
    const float dx5 = dx4 + gridspacing_coalesce, dx6 = dx5 + gridspacing_coalesce, dx7 = dx6 + gridspacing_coalesce;
    const float dx8 = dx7 + gridspacing_coalesce;
    energyvalx1 += atominfo[atomid].w * rsqrtf(dx1 * dx1 + dyz2);
    energyvalx2 += atominfo[atomid].w * rsqrtf(dx2 * dx2 + dyz2);
    energyvalx3 += atominfo[atomid].w * rsqrtf(dx3 * dx3 + dyz2);
    energyvalx4 += atominfo[atomid].w * rsqrtf(dx4 * dx4 + dyz2);
    energyvalx5 += atominfo[atomid].w * rsqrtf(dx5 * dx5 + dyz2);
    energyvalx6 += atominfo[atomid].w * rsqrtf(dx6 * dx6 + dyz2);
    energyvalx7 += atominfo[atomid].w * rsqrtf(dx7 * dx7 + dyz2);
    energyvalx8 += atominfo[atomid].w * rsqrtf(dx8 * dx8 + dyz2);
  }
  float* const out = energygrid + y * width + x;
  out[0] += energyvalx1;
  out[blockDim.x] += energyvalx2;
  out[blockDim.x * 2] += energyvalx3;
  out[blockDim.x * 3] += energyvalx4;
  out[blockDim.x * 4] += energyvalx5;
  out[blockDim.x * 5] += energyvalx6;
  out[blockDim.x * 6] += energyvalx7;
  out[blockDim.x * 7] += energyvalx8;
}

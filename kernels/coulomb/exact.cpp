// The potential in float64 on the points of one slice, for exact.py. The inner loop runs along a row, so that the
// compiler can take several points at once without a sum changing its order.
extern "C" __attribute__((visibility("default"))) void potential_slice(long atoms, const double* x, const double* y,
                                                                       const double* z, const double* q, long nx,
                                                                       long ny, double step, double height,
                                                                       double softening, double* squares,
                                                                       double* made) {
  for (long a = 0; a < atoms; ++a) {
    const double dz = height - z[a], flat = dz * dz + softening;
    for (long i = 0; i < nx; ++i) squares[i] = (step * i - x[a]) * (step * i - x[a]);
    for (long j = 0; j < ny; ++j) {
      const double dy = step * j - y[a], rest = dy * dy + flat;
      double* row = made + j * nx;
      for (long i = 0; i < nx; ++i) row[i] += q[a] / __builtin_sqrt(squares[i] + rest);
    }
  }
}

// The kernel before it was tunable: base + the sum of the leaves that a row ends in. One thread a row.
// A word is the feature, with bit 31 at a leaf and bit 30 where NaN is among the smaller. A leaf is a float where there
// is one output, else a row of leaf_values.
struct Node {
  float threshold;
  unsigned word, smaller, larger, leaf, visits;
};

extern "C" __global__ void forest(const Node* nodes, const unsigned* roots, unsigned trees, const float* leaf_values,
                                  const float* base, unsigned outputs, const float* rows, unsigned features,
                                  float* result, unsigned count) {
  const unsigned leaf_mark = 1u << 31, nan_smaller = 1u << 30, feature_mask = nan_smaller - 1;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (unsigned k = 0; k < outputs; ++k) result[i * outputs + k] = base[k];
  for (unsigned tree = 0; tree < trees; ++tree) {
    Node node = nodes[roots[tree]];
    while ((node.word & leaf_mark) == 0) {
      const float cell = rows[i * features + (node.word & feature_mask)];
      const bool nan = cell != cell && (node.word & nan_smaller) != 0;
      node = nodes[cell <= node.threshold || nan ? node.smaller : node.larger];
    }
    if (outputs == 1)
      result[i] += __uint_as_float(node.leaf);
    else
      for (unsigned k = 0; k < outputs; ++k) result[i * outputs + k] += leaf_values[node.leaf * outputs + k];
  }
}

// Which configuration runs: the entry with these very features, else the others, nearest first, else the default, else
// what the family falls back on. Those of the device's own name come first, then those of its compute capability;
// never another architecture's.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tuned/layout.h"

namespace tuned {

// The device that is asked for. `capability` is 90 for 9.0.
struct Device {
  std::string name;
  int capability = 0;
  Limits limits;
};

// What was tuned: an input's features and options with the configuration that won.
struct Entry {
  const char* name;
  const char* device;
  int capability;
  std::vector<double> features;  // NaN where one has no value
  std::vector<int> options;
  int configuration;
  double median_ms;
};

// A configuration for any input: of a device, or of every one (an empty `device`).
struct Fallback {
  const char* rule;
  const char* device;
  int capability;
  std::vector<int> options;
  int configuration;
};

struct Candidate {
  const char* rule;
  const char* origin;
  int configuration;
  double median_ms;  // as recorded for the entry's own input; 0 where nothing was
};

struct Geometry {
  std::int64_t grid[3], block[3], shared_bytes;
};

// Euclidean distance of the logarithms; a feature that only one side has, or that is above 0 on one side only, counts
// as a factor of 1000.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double apart = 0;
    if (a[i] > 0 && b[i] > 0)
      apart = std::log(a[i] / b[i]);
    else if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))))
      apart = std::log(1000.0);
    total += apart * apart;
  }
  return std::sqrt(total);
}

// Every configuration worth considering, best first.
inline std::vector<Candidate> candidates(const std::vector<Entry>& entries, const std::vector<Fallback>& fallbacks,
                                         const Device& device, const std::vector<double>& features,
                                         const std::vector<int>& options) {
  std::vector<Candidate> found;
  const auto is_own = [&](const char* name) { return device.name == name; };
  for (const bool own : {true, false}) {
    std::vector<const Entry*> near;
    for (const Entry& entry : entries)
      if (entry.capability == device.capability && is_own(entry.device) == own && entry.options == options)
        near.push_back(&entry);
    std::stable_sort(near.begin(), near.end(), [&](const Entry* a, const Entry* b) {
      return distance(a->features, features) < distance(b->features, features);
    });
    for (const Entry* entry : near) {
      const char* rule = !own ? "capability" : entry->features == features ? "exact" : "nearest";
      found.push_back({rule, entry->name, entry->configuration, entry->median_ms});
    }
  }
  for (const bool own : {true, false})
    for (const Fallback& fallback : fallbacks)
      if (fallback.capability == device.capability && is_own(fallback.device) == own && fallback.options == options)
        found.push_back({fallback.rule, fallback.device, fallback.configuration, 0});
  for (const Fallback& fallback : fallbacks)
    if (fallback.device[0] == '\0' && fallback.options == options)
      found.push_back({fallback.rule, "", fallback.configuration, 0});
  return found;
}

// Why a device with `limits` cannot launch this; empty when it can.
inline std::string refusal(const Geometry& launch, const Limits& limits) {
  const std::int64_t most[3] = {limits.grid_x, limits.grid_y, limits.grid_z};
  for (int axis = 0; axis < 3; ++axis)
    if (launch.grid[axis] < 1 || launch.grid[axis] > most[axis])
      return "a grid of " + std::to_string(launch.grid[axis]) + " blocks is outside 1.." + std::to_string(most[axis]);
  const std::int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  if (threads < 1 || threads > limits.threads_per_block)
    return "a block of " + std::to_string(threads) + " threads is outside 1.." +
           std::to_string(limits.threads_per_block);
  if (launch.shared_bytes > limits.shared_bytes_per_block)
    return std::to_string(launch.shared_bytes) + " bytes of shared memory a block pass " +
           std::to_string(limits.shared_bytes_per_block);
  return "";
}

}  // namespace tuned

// Where two items of packed attributes differ.
#pragma once
#include "autotune/packing.cuh"

enum class Missing { category, masked };

constexpr unsigned missing_value = 3;  // PLINK's fourth code, see plink.py

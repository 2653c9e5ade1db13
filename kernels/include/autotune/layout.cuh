// SPDX-License-Identifier: Apache-2.0
// The layout library in one header: accessors, the layouts that they can have, and reductions. Images, textures beyond
// arrays, and barriers have headers of their own.
#pragma once

#define AUTOTUNE_LAYOUT_VERSION "0.1.0"

#include "autotune/array.cuh"
#include "autotune/block.cuh"
#include "autotune/curve.cuh"
#include "autotune/element.cuh"
#include "autotune/field_access.cuh"
#include "autotune/fields.cuh"
#include "autotune/shared.cuh"
#include "autotune/shared_array.cuh"
#include "autotune/storage.cuh"
#include "autotune/strided.cuh"
#include "autotune/swizzle.cuh"
#include "autotune/tile.cuh"
#include "autotune/warp.cuh"

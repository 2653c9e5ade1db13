// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory, sized at launch: `T* buffer = autotune::dynamic_shared<T>();`
#pragma once
#include "autotune/device.cuh"

namespace autotune {

#ifndef AUTOTUNE_CPU
// One declaration for every T: CUDA refuses the same extern array with two types.
extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];

template <class T>
AUTOTUNE_DEVICE T* dynamic_shared() {
  return reinterpret_cast<T*>(dynamic_shared_bytes);
}
#endif

}  // namespace autotune

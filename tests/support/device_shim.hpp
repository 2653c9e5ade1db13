// Just enough of CUDA for the layout library's headers on a host compiler, written apart from the project's
// own cpu headers; and loops over every index of an accessor.
#pragma once
#include <math.h>
#include <string.h>

#include "cuda_words.hpp"

// A texture object is the address of one of these.
struct Texture {
  const void* base;
  unsigned long long width, texels;
};
using cudaTextureObject_t = unsigned long long;

inline bool texture_misused = false;

template <class T>
T fetch(cudaTextureObject_t object, unsigned long long texel) {
  const auto* texture = reinterpret_cast<const Texture*>(object);
  if (texel >= texture->texels) {
    texture_misused = true;
    return T{};
  }
  return static_cast<const T*>(texture->base)[texel];
}
template <class T>
T tex1Dfetch(cudaTextureObject_t object, int x) {
  return fetch<T>(object, static_cast<unsigned long long>(x));
}
template <class T>
T tex2D(cudaTextureObject_t object, float x, float y) {
  const auto column = static_cast<unsigned long long>(x), row = static_cast<unsigned long long>(y);
  const unsigned long long width = reinterpret_cast<const Texture*>(object)->width;
  if (x - column != 0.5f || y - row != 0.5f || column >= width) texture_misused = true;  // not a texel's centre
  return fetch<T>(object, row * width + column);
}
template <class T>
T __ldg(const T* address) {
  return *address;
}
inline int __popc(unsigned word) { return __builtin_popcount(word); }
template <class T>
T atomicAdd(T* address, T value) {
  const T before = *address;
  *address += value;
  return before;
}

#include "autotune/array.cuh"
#include "autotune/curve.cuh"
#include "autotune/field_access.cuh"
#include "autotune/fields.cuh"
#include "autotune/storage.cuh"
#include "autotune/swizzle.cuh"
#include "autotune/tile.cuh"

// visit(i, j, ...) for every index, the last one fastest.
template <class Array>
const Array& codes_of(const Array& array) {
  return array;
}
template <class Value, class Number, class Codec, class Scale, class Codes>
const Codes& codes_of(const autotune::Narrow<Value, Number, Codec, Scale, Codes>& array) {
  return array.codes;
}

template <class Array, class Visit>
void for_each_index(const Array& array, Visit visit) {
  constexpr int rank = std::decay_t<decltype(codes_of(array))>::rank;
  for (unsigned i = 0; i < array.extent(0); ++i)
    if constexpr (rank == 1)
      visit(i);
    else
      for (unsigned j = 0; j < array.extent(1); ++j)
        if constexpr (rank == 2)
          visit(i, j);
        else
          for (unsigned k = 0; k < array.extent(2); ++k) visit(i, j, k);
}

template <class Array>
Array accessor(const unsigned char* argument) {
  Array array;
  memcpy(&array, argument, sizeof array);
  return array;
}

template <class Array>
void load_all(const unsigned char* argument, unsigned char* values) {
  const auto array = accessor<Array>(argument);
  for_each_index(array, [&](auto... index) {
    const auto value = array.load(index...);
    memcpy(values, &value, sizeof value);
    values += sizeof value;
  });
}

template <class Array>
void store_all(const unsigned char* argument, const unsigned char* values) {
  const auto array = accessor<Array>(argument);
  for_each_index(array, [&](auto... index) {
    typename Array::value_type value;
    memcpy(&value, values, sizeof value);
    values += sizeof value;
    array.store(value, index...);
  });
}

template <class Array>
void add_all(const unsigned char* argument, const unsigned char* values) {
  const auto array = accessor<Array>(argument);
  for_each_index(array, [&](auto... index) {
    typename Array::value_type value;
    memcpy(&value, values, sizeof value);
    values += sizeof value;
    array.add(value, index...);
  });
}

// For each of n words: the elements of a; in how many a and b differ; in how many a differs from b and from c.
template <class Packing>
void compare(const unsigned char* a, const unsigned char* b, const unsigned char* c, int n, unsigned* out) {
  using Word = typename Packing::Word;
  for (int w = 0; w < n; ++w) {
    Word one, two, three;
    memcpy(&one, a + w * sizeof(Word), sizeof(Word));
    memcpy(&two, b + w * sizeof(Word), sizeof(Word));
    memcpy(&three, c + w * sizeof(Word), sizeof(Word));
    for (int k = 0; k < Packing::elements; ++k) *out++ = Packing::element(one, k);
    *out++ = Packing::count(Packing::differ(one, two));
    *out++ = Packing::count(Packing::differ(one, two) & Packing::differ(one, three));
  }
}

// The elements of a word filled with `value`.
template <class Packing>
void fill(unsigned value, unsigned* out) {
  const auto word = Packing::filled(value);
  for (int k = 0; k < Packing::elements; ++k) *out++ = Packing::element(word, k);
}

// The field FIELD of every element, by itself.
template <class Array, auto FIELD>
void load_fields(const unsigned char* argument, unsigned char* values) {
  const auto array = accessor<Array>(argument);
  for_each_index(array, [&](auto... index) {
    const auto value = autotune::load_field<FIELD>(array, index...);
    memcpy(values, &value, sizeof value);
    values += sizeof value;
  });
}

template <class Array, auto FIELD>
void store_fields(const unsigned char* argument, const unsigned char* values) {
  const auto array = accessor<Array>(argument);
  for_each_index(array, [&](auto... index) {
    typename autotune::FieldOf<FIELD>::type value;
    memcpy(&value, values, sizeof value);
    values += sizeof value;
    autotune::store_field<FIELD>(array, value, index...);
  });
}

using Bytes = const unsigned char*;

#define CASE(NUMBER, BYTES, ...)                                                                             \
  using Case##NUMBER = __VA_ARGS__;                                                                          \
  static_assert(sizeof(Case##NUMBER) == BYTES && alignof(Case##NUMBER) == 8, "the host passes other bytes"); \
  extern "C" void load_##NUMBER(Bytes argument, unsigned char* values) { load_all<Case##NUMBER>(argument, values); }

#define WRITABLE(NUMBER) \
  extern "C" void store_##NUMBER(Bytes argument, Bytes values) { store_all<Case##NUMBER>(argument, values); }

#define FIELD(NUMBER, NAME)                                                       \
  extern "C" void load_##NUMBER##_##NAME(Bytes argument, unsigned char* values) { \
    load_fields<Case##NUMBER, &Case##NUMBER::value_type::NAME>(argument, values); \
  }

#define WRITABLE_FIELD(NUMBER, NAME)                                               \
  extern "C" void store_##NUMBER##_##NAME(Bytes argument, Bytes values) {          \
    store_fields<Case##NUMBER, &Case##NUMBER::value_type::NAME>(argument, values); \
  }

#define ADDABLE(NUMBER) \
  extern "C" void add_##NUMBER(Bytes argument, Bytes values) { add_all<Case##NUMBER>(argument, values); }

#define PACKING(NAME, ...)                                                          \
  extern "C" void compare_##NAME(Bytes a, Bytes b, Bytes c, int n, unsigned* out) { \
    compare<__VA_ARGS__>(a, b, c, n, out);                                          \
  }                                                                                 \
  extern "C" void fill_##NAME(unsigned value, unsigned* out) { fill<__VA_ARGS__>(value, out); }

extern "C" unsigned char* window() { return autotune::constant_window<65536>; }
extern "C" bool misused() { return texture_misused; }

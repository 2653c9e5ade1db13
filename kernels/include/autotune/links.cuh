// links: where an element leads to, stored by how far that is in 16 bits, or not at all.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

// What is stored of an element.
template <int BYTES>
struct StoredBytes {
  unsigned char byte[BYTES];
};

// SIZE bytes from FROM of what is stored, at TO of the value.
template <int FROM, int TO, int SIZE>
struct AsItIs {
  AUTOTUNE_DEVICE static void read(const unsigned char* stored, unsigned char* value, unsigned long long,
                                   unsigned long long) {
    memcpy(value + TO, stored + FROM, SIZE);
  }
};

// A distance; the smallest stands for no link.
template <int FROM, int TO, class Link, long long NONE>
struct Relative16 {
  AUTOTUNE_DEVICE static void read(const unsigned char* stored, unsigned char* value, unsigned long long index,
                                   unsigned long long) {
    short apart;
    memcpy(&apart, stored + FROM, sizeof apart);
    const Link link = apart == -32768 ? static_cast<Link>(NONE) : static_cast<Link>(index + apart);
    memcpy(value + TO, &link, sizeof link);
  }
};

// The element behind it.
template <int TO, class Link, long long NONE>
struct Next {
  AUTOTUNE_DEVICE static void read(const unsigned char*, unsigned char* value, unsigned long long index,
                                   unsigned long long extent) {
    const Link link = index + 1 < extent ? static_cast<Link>(index + 1) : static_cast<Link>(NONE);
    memcpy(value + TO, &link, sizeof link);
  }
};

// What a kernel receives where links are not stored as they are: inputs of one extent, so there is no store. Stored:
// the Array of the bytes.
template <class Value, class Stored, class... PIECES>
struct Linked {
  using value_type = Value;
  using Bytes = typename Stored::value_type;

  Stored stored;

  AUTOTUNE_DEVICE unsigned extent(int axis) const { return stored.extent(axis); }

  template <class Index>
  AUTOTUNE_DEVICE Value load(Index index) const {
    const Bytes bytes = stored.load(index);
    struct Whole {
      unsigned char byte[sizeof(Value)];
    } whole;
    (PIECES::read(bytes.byte, whole.byte, static_cast<unsigned long long>(index), extent(0)), ...);
    return bit_cast<Value>(whole);
  }
};

}  // namespace autotune

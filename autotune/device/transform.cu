// Stores an array that is on the device already: the device twin of Layout.write, and of Layout.restore without
// packing. Nothing of a family is in here.
#include "autotune/curve.cuh"
#include "autotune/storage.cuh"
#include "autotune/swizzle.cuh"

constexpr int most_axes = 6;

// transform.py: MOVE. Lengths are in texels unless they say bytes; axes go from the slowest to the contiguous one.
struct Move {
  unsigned long long elements;            // values
  unsigned long long part_stride;         // between the parts of an element, records: soa
  unsigned long long extents[most_axes];  // 1 where there is no such axis
  long long strides[most_axes];           // of the canonical array, in bytes
  unsigned long long blocks[most_axes];   // as stored: how far apart blocks lie, in elements
  long long packed_stride;                // between elements that share a word, in bytes
  unsigned long long packed;              // how many of them there are along their axis
  unsigned packed_axis, parts, texel_bytes, members, member;
  unsigned lanes;                   // 1 aos, 0 soa, else the run of aosoa
  unsigned width, rows;             // of the plane; 0 when the texels lie in a line
  unsigned bits, planar;            // of an element in a word; 0 bits: not packed
  unsigned joined;                  // elements of a value
  unsigned element_bytes, inward;   // inward: canonical -> stored
  unsigned codec;                   // transform.py: CODECS; not 0 where numbers of element_bytes are stored as codes
  unsigned tile[most_axes];         // elements of an index in a tile
  unsigned side[most_axes];         // tiles in a block; 1 where no curve runs
  unsigned curve;                   // 0 none, 1 morton, 2 hilbert
  unsigned groups, width_of_group;  // of the swizzle
  unsigned fields;                  // 1 where fields lie in groups; then of each part:
  unsigned char before[32], count[32], within[32];  // parts before its group, in its group, the place in there
};

namespace autotune {

// The index of value number `value`, the contiguous axis fastest.
AUTOTUNE_DEVICE void index_of(const Move& move, unsigned long long value, unsigned long long (&index)[most_axes]) {
  for (int axis = most_axes - 1; axis >= 0; --axis) {
    index[axis] = value % move.extents[axis];
    value /= move.extents[axis];
  }
}

template <int RANK>
AUTOTUNE_DEVICE unsigned long long place_of(const Move& move, const unsigned long long (&tiles)[most_axes]) {
  unsigned long long cell[RANK];
  unsigned side = 1;
  int found = 0;
  for (int axis = 0; axis < most_axes; ++axis)
    if (move.side[axis] > 1) {
      side = move.side[axis];
      cell[found++] = tiles[axis] % side;
    }
  const unsigned long long wide = side;
  return move.curve == 1 ? Morton::place(cell, wide) : Hilbert::place(cell, wide);
}

// mapping.py: Mapping.element
AUTOTUNE_DEVICE unsigned long long element_of(const Move& move, const unsigned long long (&index)[most_axes]) {
  unsigned long long tiles[most_axes], element = 0, inner = 1;
  int along = 0;
  for (int axis = most_axes - 1; axis >= 0; --axis) {
    unsigned long long at = index[axis];
    if (axis == most_axes - 1) at ^= index[axis - 1] % move.groups * move.width_of_group;
    tiles[axis] = at / move.tile[axis];
    element += tiles[axis] / move.side[axis] * move.blocks[axis] + at % move.tile[axis] * inner;
    inner *= move.tile[axis];
    along += move.side[axis] > 1;
  }
  if (along == 2) element += place_of<2>(move, tiles) * inner;
  if (along == 3) element += place_of<3>(move, tiles) * inner;
  return element;
}

// layout.py: Layout.address
AUTOTUNE_DEVICE unsigned long long texel_of(const Move& move, unsigned long long element, unsigned part) {
  element = element * move.members + move.member;
  const unsigned long long offset =
      move.fields       ? move.before[part] * move.part_stride + element * move.count[part] + move.within[part]
      : move.lanes == 0 ? part * move.part_stride + element
                        : (element / move.lanes * move.parts + part) * move.lanes + element % move.lanes;
  if (move.width == 0) return offset;
  const unsigned long long y = offset / (move.width * move.rows) * move.rows + offset % move.rows;
  return y * move.width + offset / move.rows % move.width;
}

template <class Unit>
AUTOTUNE_DEVICE void copy(void* to, const void* from) {
  *static_cast<Unit*>(to) = *static_cast<const Unit*>(from);
}

AUTOTUNE_DEVICE void copy_texel(unsigned bytes, void* to, const void* from) {
  if (bytes == 1) copy<Texel<1>>(to, from);
  if (bytes == 2) copy<Texel<2>>(to, from);
  if (bytes == 4) copy<Texel<4>>(to, from);
  if (bytes == 8) copy<Texel<8>>(to, from);
  if (bytes == 16) copy<Texel<16>>(to, from);
}

AUTOTUNE_DEVICE unsigned small_number(unsigned bytes, const unsigned char* from) {
  if (bytes == 1) return *from;
  if (bytes == 2) return *reinterpret_cast<const unsigned short*>(from);
  return *reinterpret_cast<const unsigned*>(from);  // the low half of 8 bytes
}

template <class Codec>
AUTOTUNE_DEVICE void convert(unsigned element_bytes, bool inward, unsigned char* code, unsigned char* number) {
  using Code = typename Codec::Code;
  Code* const stored = reinterpret_cast<Code*>(code);
  if (element_bytes == 8) {
    double* const wide = reinterpret_cast<double*>(number);
    if (inward)
      *stored = Codec::narrow(Codec::single(*wide), 1.0f);
    else
      *wide = Codec::widen(*stored, 1.0f);
    return;
  }
  float* const wide = reinterpret_cast<float*>(number);
  if (inward)
    *stored = Codec::narrow(*wide, 1.0f);
  else
    *wide = Codec::widen(*stored, 1.0f);
}

// The numbers of one texel, which begin at `number`.
AUTOTUNE_DEVICE void convert_texel(const Move& move, unsigned char* texel, unsigned char* number) {
  const unsigned code_bytes = move.codec == 1 ? 4 : move.codec <= 3 ? 2 : 1;
  for (unsigned begin = 0; begin < move.texel_bytes; begin += code_bytes, number += move.element_bytes) {
    if (move.codec == 1) convert<Float32>(move.element_bytes, move.inward, texel + begin, number);
    if (move.codec == 2) convert<Float16>(move.element_bytes, move.inward, texel + begin, number);
    if (move.codec == 3) convert<BFloat16>(move.element_bytes, move.inward, texel + begin, number);
    if (move.codec == 4) convert<Float8E4M3>(move.element_bytes, move.inward, texel + begin, number);
    if (move.codec == 5) convert<Float8E5M2>(move.element_bytes, move.inward, texel + begin, number);
  }
}

// The 32-bit word `word` of a packed value whose first element is at `row`, number `first` along the packed axis.
AUTOTUNE_DEVICE unsigned packed_word(const Move& move, const unsigned char* row, unsigned long long first,
                                     unsigned word) {
  const unsigned elements = move.planar ? 32 : 32 / move.bits, planes = move.planar ? move.bits : 1;
  first += word / planes * elements;
  const unsigned plane = word % planes, mask = move.bits == 32 ? ~0u : (1u << move.bits) - 1;
  unsigned joined = 0;
  for (unsigned k = 0; k < elements && first + k < move.packed; ++k) {
    const unsigned value =
        small_number(move.element_bytes, row + static_cast<long long>(first + k) * move.packed_stride);
    joined |= move.planar ? (value >> plane & 1u) << k : (value & mask) << (k * move.bits);
  }
  return joined;
}

}  // namespace autotune

// One thread for each texel of a value; padding is left as it is, and the last word of a packed row is filled up with
// zeros.
template <class Policy>
__global__ void move_texels(unsigned char* canonical, unsigned char* stored, Move move) {
  const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const unsigned part = thread % move.parts;
  if (thread / move.parts >= move.elements) return;
  unsigned long long index[most_axes];
  autotune::index_of(move, thread / move.parts, index);
  const unsigned long long element = autotune::element_of(move, index);
  unsigned char* const texel = stored + autotune::texel_of(move, element, part) * move.texel_bytes;
  unsigned char* value = canonical;
  for (int axis = 0; axis < most_axes; ++axis)
    if (move.bits == 0 || axis != static_cast<int>(move.packed_axis))
      value += static_cast<long long>(index[axis]) * move.strides[axis];
  if (move.codec != 0) {
    const unsigned code_bytes = move.codec == 1 ? 4 : move.codec <= 3 ? 2 : 1;
    autotune::convert_texel(move, texel, value + part * move.texel_bytes / code_bytes * move.element_bytes);
    return;
  }
  if (move.bits == 0) {
    value += part * move.texel_bytes;
    if (move.inward)
      autotune::copy_texel(move.texel_bytes, texel, value);
    else
      autotune::copy_texel(move.texel_bytes, value, texel);
    return;
  }
  const unsigned words = move.texel_bytes / 4;
  const unsigned long long first = index[move.packed_axis] * move.joined;
  for (unsigned w = 0; w < words; ++w)
    reinterpret_cast<unsigned*>(texel)[w] = autotune::packed_word(move, value, first, part * words + w);
}

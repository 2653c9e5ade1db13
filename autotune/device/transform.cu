// Stores an array that is on the device already: the device twin of Layout.write, and of Layout.restore without
// packing. Nothing of a family is in here.
#include "autotune/device.cuh"
#include "autotune/storage.cuh"

// transform.py: MOVE. Lengths are in texels unless they say bytes; axes go from the slowest to the contiguous one.
struct Move {
  unsigned long long elements;     // stored, the padded ones too
  unsigned long long part_stride;  // between the parts of an element, records: soa
  unsigned long long padded[6];    // extents as stored; 1 where there is no such axis
  unsigned long long extents[6];   // without padding
  long long strides[6];            // of the canonical array, in bytes
  long long packed_stride;         // between elements that share a word, in bytes
  unsigned long long packed;       // how many of them there are along their axis
  unsigned packed_axis, parts, texel_bytes, members, member;
  unsigned lanes;                  // 1 aos, 0 soa, else the run of aosoa
  unsigned width, rows;            // of the plane; 0 when the texels lie in a line
  unsigned bits, planar;           // of an element in a word; 0 bits: not packed
  unsigned joined;                 // elements of a value
  unsigned element_bytes, inward;  // inward: canonical -> stored
  unsigned codec;                  // transform.py: CODECS; not 0 where numbers of element_bytes are stored as codes
};

namespace autotune {

struct Place {
  unsigned long long index[6];
  bool is_padding;
};

// Which canonical element the stored `element` is.
AUTOTUNE_DEVICE Place place_of(const Move& move, unsigned long long element) {
  Place place = {};
  for (int axis = 5; axis >= 0; --axis) {
    place.index[axis] = element % move.padded[axis];
    element /= move.padded[axis];
    place.is_padding |= place.index[axis] >= move.extents[axis];
  }
  return place;
}

// layout.py: Layout.address
AUTOTUNE_DEVICE unsigned long long texel_of(const Move& move, unsigned long long element, unsigned part) {
  element = element * move.members + move.member;
  const unsigned long long offset =
      move.lanes == 0 ? part * move.part_stride + element
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
      *stored = Codec::narrow(static_cast<float>(*wide), 1.0f);
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

// One thread for each texel; padding is left as it is, and the last word of a packed row is filled up with zeros.
template <class Policy>
__global__ void move_texels(unsigned char* canonical, unsigned char* stored, Move move) {
  const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const unsigned long long element = thread / move.parts;
  const unsigned part = thread % move.parts;
  if (element >= move.elements) return;
  const autotune::Place place = autotune::place_of(move, element);
  if (place.is_padding) return;
  unsigned char* const texel = stored + autotune::texel_of(move, element, part) * move.texel_bytes;
  unsigned char* value = canonical;
  for (int axis = 0; axis < 6; ++axis)
    if (move.bits == 0 || axis != static_cast<int>(move.packed_axis))
      value += static_cast<long long>(place.index[axis]) * move.strides[axis];
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
  const unsigned long long first = place.index[move.packed_axis] * move.joined;
  for (unsigned w = 0; w < words; ++w)
    reinterpret_cast<unsigned*>(texel)[w] = autotune::packed_word(move, value, first, part * words + w);
}

// How an array is stored: from a plain row-major array to the bytes that a kernel reads, and back. The steps are
// packing or storage -> axes, padding, tiles, curve, steps -> records -> grouping -> dims; the accessors in
// kernels/autotune do the same on the GPU.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tuned/curve.h"
#include "tuned/storage.h"

namespace tuned {

using Bytes = std::vector<unsigned char>;
using Shape = std::vector<std::int64_t>;
using Step = std::function<void(Shape& at, const Shape& extents)>;

enum class Memory { global, readonly, texture, constant };
enum class Dims { line, plane, pitched_plane, image, pitched_image };
enum class Edge { clamp, mirror, wrap, border };             // of an image: what lies beyond it
enum class Texel { bits, unsigned_integer, integer, real };  // what hardware takes an image's element for

struct Layout {
  const char* name = "";
  Memory memory = Memory::global;
  Dims dims = Dims::line;
  int element_bytes = 4;                 // of the plain array
  bool is_signed = false;                // the elements, where they are packed
  int texel_bytes = 4;                   // of one access
  std::vector<int> axes = {0};           // from the slowest to the contiguous one
  int padding = 1;                       // the contiguous extent is a multiple of it
  int plus = 0;                          // values more behind each row
  std::vector<int> tiles;                // values of a tile along each axis; empty: no tiles
  Curve curve = Curve::none;             // through the tiles
  std::vector<int> along;                // the axes of the curve, from the slowest on
  int side = 0;                          // tiles along each of them in a block; 0: as many as the fewest take
  std::vector<Step> steps;               // each of which moves an index to another one
  int span = 1;                          // rows are a multiple of it, so that steps may leave an extent
  int packed_axis = -1;                  // along which elements share a word; -1: none do
  int bits = 0;                          // of an element in its word
  bool is_planar = false;                // bit k of word p is bit p of element k
  int vector = 1;                        // words of a value
  int lanes = 1;                         // records: 1 aos, 0 soa, else the run of aosoa
  std::vector<std::vector<int>> fields;  // groups of parts, where those of a record do not lie in one of these ways
  int members = 1, member = 0;           // grouping: arrays in one buffer, and which of them this is
  std::int64_t plane_width = 4096;       // in texels, a power of two
  std::int64_t plane_rows = 1;           // of a block of the plane, a power of two
  Edge edge = Edge::clamp;               // of an image, as the next four
  Texel texel = Texel::bits;             // what its hardware works with
  bool is_normalised = false;            // read as 0 to 1
  bool is_linear = false;                // interpolated
  bool is_surface = false;               // written
  int index_bits = 32;                   // of an address on the GPU
  std::int64_t constant_bytes = 65536;
  std::int64_t constant_offset = 0;
  Storage storage = Storage::declared;  // of each number
  int number_bytes = 4;                 // of one as it is declared
  float scale = 0;                      // of scaled integers; 0: of what is in the array
  bool by_row = false;                  // then one for each index of the first extent

  bool is_strided() const { return tiles.empty() && curve == Curve::none && steps.empty(); }
  int tile(int axis) const { return tiles.empty() ? 1 : tiles[axis]; }
  bool is_stored() const { return storage != Storage::declared; }
  bool has_scales() const { return largest_code(storage) > 0 && scale == 0; }
  int numbers() const { return element_bytes / number_bytes; }  // of an element, where they are stored
  bool is_packed() const { return packed_axis >= 0; }
  int joined() const { return is_packed() ? vector * (is_planar ? 32 : 32 / bits) : 1; }  // elements of a value
  int value_bytes() const {
    if (is_stored()) return numbers() * code_bytes(storage);
    return is_packed() ? vector * (is_planar ? 4 * bits : 4) : element_bytes;
  }
  int parts() const { return value_bytes() / texel_bytes; }
  bool is_plane() const { return dims == Dims::plane || dims == Dims::pitched_plane; }
  bool is_image() const { return dims == Dims::image || dims == Dims::pitched_image; }
};

// Where an array of one shape goes. Strides are in values, part_stride and the plane in texels.
struct Room {
  std::vector<std::int64_t> extents,
      strides;                      // by axis of the array, in values; strides of blocks, where there are any
  std::vector<std::int64_t> sides;  // by axis: tiles in a block of the curve, else 1
  std::int64_t values = 0;          // those that pad the contiguous axis too
  std::int64_t part_stride = 0;
  std::int64_t texels = 0, bytes = 0;
  std::int64_t scales = 0, first_scale = 0, scale_texels = 1;  // how many lie behind the values, from which texel on
  std::int64_t width = 0, height = 0;                          // of the plane or the image; 0 on a line
  std::int64_t depth = 0;                                      // of an image of three extents
};

// What a device can hold and launch; the values are those of compute capability 9.0.
struct Limits {
  std::int64_t grid_x = 2147483647, grid_y = 65535, grid_z = 65535;
  std::int64_t threads_per_block = 1024, shared_bytes_per_block = 232448, constant_bytes = 65536;
  std::int64_t texture_1d_texels = 1 << 28, texture_2d_width = 131072, texture_2d_height = 65536;
  std::int64_t texture_pitched_width = 131072, texture_pitched_height = 65000, texture_3d_side = 16384;
  std::int64_t memory_bytes = INT64_MAX;
};

inline std::int64_t rounded(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// The sides of a curve's blocks for an array of these extents; 1 along other axes.
inline std::vector<std::int64_t> sides(const Layout& layout, const Shape& extents) {
  std::vector<std::int64_t> found(extents.size(), 1);
  if (layout.curve == Curve::none) return found;
  std::int64_t side = layout.side;
  if (side == 0) {
    std::int64_t fewest = INT64_MAX;
    for (const int axis : layout.along) {
      const std::int64_t tiles = rounded(extents[axis], layout.tile(axis)) / layout.tile(axis);
      fewest = tiles < fewest ? tiles : fewest;
    }
    for (side = 1; side < fewest;) side *= 2;
  }
  for (const int axis : layout.along) found[axis] = side;
  return found;
}

inline Room room(const Layout& layout, const Shape& shape) {
  Room found;
  found.extents = shape;
  if (layout.is_packed()) {
    std::int64_t& packed = found.extents[layout.packed_axis];
    packed = (packed + layout.joined() - 1) / layout.joined();
  }
  found.strides.resize(shape.size());
  found.sides = sides(layout, found.extents);
  found.values = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    found.values *= layout.tile(static_cast<int>(axis)) * found.sides[axis];
  for (auto axis = layout.axes.rbegin(); axis != layout.axes.rend(); ++axis) {
    const bool is_row = axis == layout.axes.rbegin();
    const std::int64_t step = layout.tile(*axis) * found.sides[*axis];
    std::int64_t multiple = step;
    if (is_row)
      multiple = std::lcm(std::lcm(step, std::int64_t{layout.padding}), std::int64_t{layout.span});
    found.strides[*axis] = found.values;
    found.values *= rounded(found.extents[*axis], multiple) / step;
    if (is_row) found.values += layout.plus;
  }
  found.part_stride = found.values * layout.members;
  if (!layout.fields.empty()) found.part_stride = rounded(found.part_stride, 16 / layout.texel_bytes);
  const std::int64_t run = layout.lanes > 1 ? layout.lanes : 1;
  found.texels = (found.part_stride + run - 1) / run * run * layout.parts();
  if (layout.has_scales()) {
    found.scales = layout.by_row ? shape[0] : 1;
    found.scale_texels = layout.texel_bytes < 4 ? 4 / layout.texel_bytes : 1;
    found.first_scale = (found.texels + found.scale_texels - 1) / found.scale_texels * found.scale_texels;
    found.texels = found.first_scale + found.scales * found.scale_texels;
  }
  if (layout.is_image()) {
    const std::size_t last = layout.axes.size() - 1;
    found.width = found.extents[layout.axes[last]];
    found.height = found.extents[layout.axes[last - 1]];
    found.depth = last > 1 ? found.extents[layout.axes[0]] : 0;
  }
  if (layout.is_plane()) {
    const std::int64_t block = layout.plane_width * layout.plane_rows;
    found.width = layout.plane_width;
    found.height = (found.texels + block - 1) / block * layout.plane_rows;
    found.texels = found.width * found.height;
  }
  found.bytes = found.texels * layout.texel_bytes;
  return found;
}

// The texel that lies at `offset` in the line.
inline std::int64_t folded(const Layout& layout, std::int64_t offset) {
  if (!layout.is_plane()) return offset;
  const std::int64_t width = layout.plane_width, rows = layout.plane_rows;
  const std::int64_t y = offset / (width * rows) * rows + offset % rows;
  return y * width + offset / rows % width;
}

// The number of the value at `at`, among those that pad too.
inline std::int64_t number(const Layout& layout, const Room& room, std::vector<std::int64_t> at) {
  for (const Step& step : layout.steps) step(at, room.extents);
  std::int64_t value = 0, inner = 1;
  for (auto axis = layout.axes.rbegin(); axis != layout.axes.rend(); ++axis) {
    const std::int64_t size = layout.tile(*axis);
    value += at[*axis] / size / room.sides[*axis] * room.strides[*axis] + at[*axis] % size * inner;
    inner *= size;
  }
  if (layout.curve == Curve::none) return value;
  std::vector<std::int64_t> cell;
  for (const int axis : layout.along) cell.push_back(at[axis] / layout.tile(axis) % room.sides[axis]);
  const std::int64_t side = room.sides[layout.along[0]];
  return value + (layout.curve == Curve::morton ? morton(cell, side) : hilbert(cell, side)) * inner;
}

// The texel of part `part` of value `value`, where the fields of a record lie in groups.
inline std::int64_t in_group(const Layout& layout, const Room& room, std::int64_t value, std::int64_t part) {
  std::int64_t before = 0;
  for (const std::vector<int>& group : layout.fields) {
    const std::int64_t count = static_cast<std::int64_t>(group.size());
    for (std::int64_t place = 0; place < count; ++place)
      if (group[place] == part) return before * room.part_stride + value * count + place;
    before += count;
  }
  throw std::out_of_range(std::string(layout.name) + ": a part is in no group");
}

// The texel of part `part` of value `value`.
inline std::int64_t address(const Layout& layout, const Room& room, std::int64_t value, std::int64_t part) {
  value = value * layout.members + layout.member;
  const std::int64_t offset =
      !layout.fields.empty() ? in_group(layout, room, value, part)
      : layout.lanes == 0    ? part * room.part_stride + value
                             : (value / layout.lanes * layout.parts() + part) * layout.lanes + value % layout.lanes;
  return folded(layout, offset);
}

// Calls visit(indices, value) for every value, in the order of the axes; padding is left out.
template <class Visit>
void for_each_value(const Layout& layout, const Room& room, Visit visit) {
  const int rank = static_cast<int>(layout.axes.size());
  for (std::int64_t extent : room.extents)
    if (extent == 0) return;
  std::vector<std::int64_t> at(rank, 0);
  std::int64_t value = 0;
  for (;;) {
    visit(at, layout.is_strided() ? value : number(layout, room, at));
    int place = rank - 1;
    for (; place >= 0; --place) {
      const int axis = layout.axes[place];
      value += room.strides[axis];
      if (++at[axis] < room.extents[axis]) break;
      value -= at[axis] * room.strides[axis];
      at[axis] = 0;
    }
    if (place < 0) return;
  }
}

// How far element `k` of the value at `at` is from the array's first element; -1 behind the packed axis' end.
inline std::int64_t element(const Layout& layout, const Shape& shape, const std::vector<std::int64_t>& at, int k) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    const std::int64_t index = axis == layout.packed_axis ? at[axis] * layout.joined() + k : at[axis];
    if (index >= shape[axis]) return -1;
    offset = offset * shape[axis] + index;
  }
  return offset;
}

// Throws std::out_of_range where the element does not fit into `bits`.
inline std::uint32_t narrowed(const Layout& layout, const unsigned char* from) {
  std::uint64_t number = 0;
  std::memcpy(&number, from, layout.element_bytes);
  const bool is_negative = layout.is_signed && (number >> (8 * layout.element_bytes - 1) & 1);
  if (is_negative || number >> layout.bits != 0)
    throw std::out_of_range(std::string(layout.name) + ": " + std::to_string(layout.bits) + " bits hold 0.." +
                            std::to_string((std::uint64_t{1} << layout.bits) - 1) + ", found " +
                            (is_negative ? "a negative number" : std::to_string(number)));
  return static_cast<std::uint32_t>(number);
}

// Which word of a value element `k` is in, and from which bit on. With planes it has one bit in each of the words
// from this one on.
inline int word_of(const Layout& layout, int k) {
  return layout.is_planar ? k / 32 * layout.bits : k / (32 / layout.bits);
}
inline int bit_of(const Layout& layout, int k) {
  return layout.is_planar ? k % 32 : k % (32 / layout.bits) * layout.bits;
}

// Number `n` of a row-major array of floats or doubles.
inline double number_at(const Layout& layout, const unsigned char* array, std::int64_t n) {
  if (layout.number_bytes == 8) {
    double number;
    std::memcpy(&number, array + n * 8, 8);
    return number;
  }
  float number;
  std::memcpy(&number, array + n * 4, 4);
  return number;
}

// Throws std::out_of_range for a number that is not finite: a scale cannot be made of it.
inline std::vector<float> scales_of(const Layout& layout, const Room& room, const Shape& shape,
                                    const unsigned char* array) {
  std::vector<double> most(room.scales, 0.0);
  std::int64_t count = layout.numbers();
  for (std::int64_t extent : shape) count *= extent;
  for (std::int64_t n = 0; n < count; ++n) {
    const double number = std::fabs(number_at(layout, array, n));
    if (!std::isfinite(number)) throw std::out_of_range(std::string(layout.name) + ": not a finite number");
    double& of = most[n / (count / room.scales)];
    if (number > of) of = number;
  }
  std::vector<float> found;
  for (double magnitude : most) found.push_back(scale_for(layout.storage, magnitude));
  return found;
}

// Moves the bytes of each scale between `scales` and the texels of `buffer` that hold it.
template <class Copy>
void for_each_scale_texel(const Layout& layout, const Room& room, Copy copy) {
  const int bytes = layout.texel_bytes < 4 ? layout.texel_bytes : 4;
  for (std::int64_t row = 0; row < room.scales; ++row)
    for (std::int64_t t = 0; t < room.scale_texels; ++t)
      copy(row, t * bytes, folded(layout, room.first_scale + row * room.scale_texels + t) * layout.texel_bytes, bytes);
}

inline float scale_at(const Layout& layout, const std::vector<float>& scales, const std::vector<std::int64_t>& at) {
  if (scales.empty()) return layout.scale == 0 ? 1 : layout.scale;
  return scales[layout.by_row ? at[0] : 0];
}

// The numbers of the element at `at` as codes, and back.
inline void encode(const Layout& layout, const Shape& shape, const std::vector<std::int64_t>& at,
                   const unsigned char* array, const std::vector<float>& scales, Bytes& value) {
  const int bytes = code_bytes(layout.storage);
  const std::int64_t first = element(layout, shape, at, 0) * layout.numbers();
  for (int n = 0; n < layout.numbers(); ++n) {
    const double number = number_at(layout, array, first + n);
    const std::uint32_t code = code_of(layout.storage, number, scale_at(layout, scales, at));
    std::memcpy(value.data() + n * bytes, &code, bytes);
  }
}
inline void decode(const Layout& layout, const Shape& shape, const std::vector<std::int64_t>& at, const Bytes& value,
                   const std::vector<float>& scales, unsigned char* array) {
  const int bytes = code_bytes(layout.storage);
  const std::int64_t first = element(layout, shape, at, 0) * layout.numbers();
  for (int n = 0; n < layout.numbers(); ++n) {
    std::uint32_t code = 0;
    std::memcpy(&code, value.data() + n * bytes, bytes);
    const float number = number_of(layout.storage, code, scale_at(layout, scales, at));
    const double wide = number;
    if (layout.number_bytes == 8)
      std::memcpy(array + (first + n) * 8, &wide, 8);
    else
      std::memcpy(array + (first + n) * 4, &number, 4);
  }
}

// The value at `at` of `array`.
inline void gather(const Layout& layout, const Shape& shape, const std::vector<std::int64_t>& at,
                   const unsigned char* array, std::vector<std::uint32_t>& words, Bytes& value) {
  if (!layout.is_packed()) {
    std::memcpy(value.data(), array + element(layout, shape, at, 0) * layout.element_bytes, value.size());
    return;
  }
  words.assign(words.size(), 0);
  for (int k = 0; k < layout.joined(); ++k) {
    const std::int64_t from = element(layout, shape, at, k);
    if (from < 0) break;
    const std::uint32_t number = narrowed(layout, array + from * layout.element_bytes);
    const int word = word_of(layout, k), bit = bit_of(layout, k);
    if (layout.is_planar)
      for (int plane = 0; plane < layout.bits; ++plane) words[word + plane] |= (number >> plane & 1u) << bit;
    else
      words[word] |= number << bit;
  }
  std::memcpy(value.data(), words.data(), value.size());
}

// The inverse of gather.
inline void scatter(const Layout& layout, const Shape& shape, const std::vector<std::int64_t>& at, const Bytes& value,
                    std::vector<std::uint32_t>& words, unsigned char* array) {
  if (!layout.is_packed()) {
    std::memcpy(array + element(layout, shape, at, 0) * layout.element_bytes, value.data(), value.size());
    return;
  }
  std::memcpy(words.data(), value.data(), value.size());
  for (int k = 0; k < layout.joined(); ++k) {
    const std::int64_t to = element(layout, shape, at, k);
    if (to < 0) break;
    const int word = word_of(layout, k), bit = bit_of(layout, k);
    std::uint64_t number = 0;
    if (layout.is_planar)
      for (int plane = 0; plane < layout.bits; ++plane) number |= (words[word + plane] >> bit & 1u) << plane;
    else
      number = words[word] >> bit & ((std::uint64_t{1} << layout.bits) - 1);
    std::memcpy(array + to * layout.element_bytes, &number, layout.element_bytes);
  }
}

// Puts a row-major `array` of `shape` where it belongs in `buffer`, which is room(layout, shape).bytes long; the
// members of a group share one. Throws std::out_of_range for a number that a packing or storage does not hold.
inline void write(const Layout& layout, const Shape& shape, const void* array, Bytes& buffer) {
  const Room where = room(layout, shape);
  std::vector<std::uint32_t> words(layout.is_packed() ? layout.value_bytes() / 4 : 0);
  Bytes value(layout.value_bytes());
  std::vector<float> scales;
  if (layout.has_scales()) {
    scales = scales_of(layout, where, shape, static_cast<const unsigned char*>(array));
    for_each_scale_texel(layout, where, [&](std::int64_t row, std::int64_t from, std::int64_t to, int bytes) {
      std::memcpy(buffer.data() + to, reinterpret_cast<const unsigned char*>(&scales[row]) + from, bytes);
    });
  }
  for_each_value(layout, where, [&](const std::vector<std::int64_t>& at, std::int64_t number) {
    if (layout.is_stored())
      encode(layout, shape, at, static_cast<const unsigned char*>(array), scales, value);
    else
      gather(layout, shape, at, static_cast<const unsigned char*>(array), words, value);
    for (int part = 0; part < layout.parts(); ++part)
      std::memcpy(buffer.data() + address(layout, where, number, part) * layout.texel_bytes,
                  value.data() + part * layout.texel_bytes, layout.texel_bytes);
  });
}

// The bytes of a row-major `array` of `shape`.
inline Bytes stored(const Layout& layout, const Shape& shape, const void* array) {
  Bytes buffer(room(layout, shape).bytes, 0);
  write(layout, shape, array, buffer);
  return buffer;
}

// The row-major array of `shape` back from its bytes: the inverse of write.
inline void restore(const Layout& layout, const Shape& shape, const Bytes& buffer, void* array) {
  const Room where = room(layout, shape);
  std::vector<std::uint32_t> words(layout.is_packed() ? layout.value_bytes() / 4 : 0);
  Bytes value(layout.value_bytes());
  std::vector<float> scales(where.scales);
  for_each_scale_texel(layout, where, [&](std::int64_t row, std::int64_t to, std::int64_t from, int bytes) {
    std::memcpy(reinterpret_cast<unsigned char*>(&scales[row]) + to, buffer.data() + from, bytes);
  });
  for_each_value(layout, where, [&](const std::vector<std::int64_t>& at, std::int64_t number) {
    for (int part = 0; part < layout.parts(); ++part)
      std::memcpy(value.data() + part * layout.texel_bytes,
                  buffer.data() + address(layout, where, number, part) * layout.texel_bytes, layout.texel_bytes);
    if (layout.is_stored())
      decode(layout, shape, at, value, scales, static_cast<unsigned char*>(array));
    else
      scatter(layout, shape, at, value, words, static_cast<unsigned char*>(array));
  });
}

// Why an array does not fit on a device with `limits`; empty when it does.
inline std::string refusal(const Layout& layout, const Room& room, const Limits& limits) {
  const std::string name = std::string(layout.name) + ": ";
  if (layout.index_bits < 64 && room.texels >= std::int64_t{1} << layout.index_bits)
    return name + std::to_string(room.texels) + " texels pass the range of " + std::to_string(layout.index_bits) + "-bit addresses";
  for (std::int64_t extent : room.extents)
    if (extent >= std::int64_t{1} << 32) return name + "an extent passes the range of 32-bit numbers";
  const std::int64_t window = limits.constant_bytes - layout.constant_offset;
  if (layout.memory == Memory::constant &&
      room.bytes > (window < layout.constant_bytes ? window : layout.constant_bytes))
    return name + std::to_string(room.bytes) + " bytes do not fit in constant memory";
  if (layout.memory == Memory::texture && layout.dims == Dims::line && room.texels > limits.texture_1d_texels)
    return name + std::to_string(room.texels) + " texels pass the 1D texture limit";
  if (room.depth > 0) {
    if (room.width > limits.texture_3d_side || room.height > limits.texture_3d_side ||
        room.depth > limits.texture_3d_side)
      return name + "an image passes the 3D texture limit";
  } else if (layout.is_surface || (layout.memory == Memory::texture && layout.dims != Dims::line)) {
    const bool is_pitched = layout.dims == Dims::pitched_plane || layout.dims == Dims::pitched_image;
    if (room.width > (is_pitched ? limits.texture_pitched_width : limits.texture_2d_width) ||
        room.height > (is_pitched ? limits.texture_pitched_height : limits.texture_2d_height))
      return name + "a plane of " + std::to_string(room.width) + " x " + std::to_string(room.height) +
             " texels passes the 2D texture limit";
  }
  if (room.bytes > limits.memory_bytes) return name + std::to_string(room.bytes) + " bytes pass the device's memory";
  return "";
}

}  // namespace tuned

// Arrays in another order of an index space: rows moved, links into the space renumbered, and back.
#pragma once
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tuned/layout.h"

namespace tuned {

// A permutation of an index space and its inverse; both are empty where the space stays as it is.
struct Order {
  std::vector<std::int64_t> old_of, new_of;

  std::int64_t extent() const { return static_cast<std::int64_t>(old_of.size()); }
  Order inverse() const { return {new_of, old_of}; }
};

// From permutation[new] = old. Throws std::invalid_argument where not every number below `extent` is in it once.
inline Order order(const char* name, const std::int64_t* permutation, std::int64_t extent) {
  Order found;
  found.old_of.assign(permutation, permutation + extent);
  found.new_of.assign(found.old_of.size(), -1);
  for (std::int64_t place = 0; place < extent; ++place) {
    const std::int64_t old = permutation[place];
    if (old < 0 || old >= extent || found.new_of[old] >= 0)
      throw std::invalid_argument(std::string(name) + ": element " + std::to_string(place) + " is " +
                                  std::to_string(old) + "; every number of 0.." + std::to_string(extent - 1) +
                                  " is needed once");
    found.new_of[old] = place;
  }
  return found;
}

// Which of the caller's permutations a configuration takes for an index space, -1 for none; needed where its kernel
// relies on the order.
struct Taken {
  int permutation = -1;
  bool is_needed = false;
};

// A number in each element that is an index of a space.
struct Link {
  int space, offset, bytes;
  bool is_signed;
};

// What of an array orders change; index spaces by their place, -1 for one that no order moves.
struct Moves {
  std::vector<int> spaces;  // by axis
  std::vector<Link> links;
};

// A link outside the space (to nothing) stays as it is.
inline void renumber(const Link& link, const Order& order, unsigned char* element) {
  std::uint64_t number = 0;
  std::memcpy(&number, element + link.offset, link.bytes);
  const bool is_negative = link.is_signed && (number >> (8 * link.bytes - 1) & 1);
  if (is_negative || number >= static_cast<std::uint64_t>(order.extent())) return;
  number = static_cast<std::uint64_t>(order.new_of[number]);
  std::memcpy(element + link.offset, &number, link.bytes);
}

// Whether any of `orders`, given by index space, changes the array.
inline bool is_moved(const Moves& moves, const std::vector<Order>& orders) {
  for (const int space : moves.spaces)
    if (space >= 0 && orders[space].extent() > 0) return true;
  for (const Link& link : moves.links)
    if (orders[link.space].extent() > 0) return true;
  return false;
}

// The row-major `array` of `shape` in these orders.
inline Bytes reordered(const Moves& moves, const std::vector<Order>& orders, const Shape& shape, int element_bytes,
                       const void* array) {
  const int rank = static_cast<int>(shape.size());
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  Bytes moved(elements * element_bytes);
  Shape at(shape.size(), 0);
  for (std::int64_t element = 0; element < elements; ++element) {
    std::int64_t from = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const int space = moves.spaces[axis];
      const bool stays = space < 0 || orders[space].extent() == 0;
      from = from * shape[axis] + (stays ? at[axis] : orders[space].old_of[at[axis]]);
    }
    unsigned char* const to = moved.data() + element * element_bytes;
    std::memcpy(to, static_cast<const unsigned char*>(array) + from * element_bytes, element_bytes);
    for (const Link& link : moves.links)
      if (orders[link.space].extent() > 0) renumber(link, orders[link.space], to);
    for (int axis = rank - 1; axis >= 0 && ++at[axis] == shape[axis]; --axis) at[axis] = 0;
  }
  return moved;
}

// The inverse of reordered, in place.
inline void put_back(const Moves& moves, std::vector<Order> orders, const Shape& shape, int element_bytes,
                     void* array) {
  for (Order& each : orders) each = each.inverse();
  const Bytes back = reordered(moves, orders, shape, element_bytes, array);
  std::memcpy(array, back.data(), back.size());
}

}  // namespace tuned

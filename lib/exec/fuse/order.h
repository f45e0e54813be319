// An order in which things can be moved about cheaply while any two of them are compared at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace clnet::exec {

/// A list of 0, 1, ..., each with a label that grows along it. Where there is no label left between two neighbours, as few others
/// as will do get new ones (Bender et al., "Two simplified algorithms for maintaining order in a list", ESA 2002): n moves cost
/// n log n at most.
class Order {
 public:
  explicit Order(std::size_t count);

  bool before(std::size_t a, std::size_t b) const { return labels_[a] < labels_[b]; }
  /// Moves `what` to the place just before or behind `place`, which is another one.
  void move_before(std::size_t what, std::size_t place) { move(what, previous_[place], place); }
  void move_behind(std::size_t what, std::size_t place) { move(what, place, next_[place]); }

 private:
  void move(std::size_t what, std::size_t left, std::size_t right);
  void make_room(std::size_t at);

  // The last two are the list's ends.
  std::vector<std::size_t> next_, previous_;
  std::vector<std::uint64_t> labels_;
};

}  // namespace clnet::exec

// An ordered list with cheap moves and constant-time comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace clnet::exec {

/// A list of 0, 1, ..., with labels that grow along it. Where no label is free between two neighbours, as few others as possible
/// get new ones: n moves cost n log n at most. (Bender et al., "Two simplified algorithms for maintaining order in a list", ESA
/// 2002.)
class Order {
 public:
  explicit Order(std::size_t count);

  bool before(std::size_t a, std::size_t b) const { return labels_[a] < labels_[b]; }
  /// Moves `what` directly before or after `place`, a different element.
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

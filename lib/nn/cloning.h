// What a deep copy has copied so far.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

namespace clnet {
struct Slot;
}

namespace clnet::nn {

struct Clones {
  std::unordered_map<const Slot*, std::shared_ptr<Slot>> slots;
  /// What copies of modules share otherwise: each and its copy.
  std::unordered_map<const void*, std::pair<std::shared_ptr<void>, std::shared_ptr<void>>> shared;
  /// Of modules: each state and its copy.
  std::unordered_map<const void*, std::pair<std::shared_ptr<void>, std::shared_ptr<void>>> states;
};
/// This thread's clone that is being made, or nullptr.
Clones* cloning_now();

}  // namespace clnet::nn

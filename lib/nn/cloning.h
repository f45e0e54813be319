// What a deep copy has copied so far.
#pragma once

#include <memory>
#include <unordered_map>

namespace clnet {
struct Slot;
}

namespace clnet::nn {

struct Clones {
  std::unordered_map<const Slot*, std::shared_ptr<Slot>> slots;
  std::unordered_map<const void*, std::shared_ptr<void>> states;  ///< of modules
};
/// This thread's clone that is being made, or nullptr.
Clones* cloning_now();

}  // namespace clnet::nn

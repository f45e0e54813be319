// What a function that compile() runs looks at besides its inputs, told by those who hand it out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/graph/node.h"

namespace clnet {

struct Effect;
struct Slot;

/// Stands for the value of an input or a slot, which is another one in each call: what depends on it cannot be read.
struct InputValue : Value {};

/// An effect of every call, on a value that is there when the call begins.
struct CallEffect {
  Tensor value;
  std::shared_ptr<Effect> effect;
};

struct Capture {
  /// A leaf that is another one in each call: what it was in the first, and where the next comes from.
  template <class From>
  struct Changing {
    Tensor leaf;  ///< held, so that no other node takes its address
    From from;
  };
  std::unordered_map<const Node*, Changing<std::shared_ptr<Slot>>> slots;  ///< present values of slots, or what stands for them
  std::unordered_map<const Slot*, Tensor> stand_ins;
  std::vector<Changing<std::function<Tensor()>>> drawn;  ///< seeds and offsets of random numbers, in the program's order
  std::vector<std::function<bool()>> conditions;         ///< each: what the host decided by is as it was
  /// What the function sets on the host, by where that is: each to be done again by a call that does not run the function.
  std::unordered_map<const void*, std::function<void()>> settings;
  std::vector<CallEffect> effects;
  const std::uint64_t id = next_id();                 ///< never 0, never used again
  const std::uint64_t first = Node::next_sequence();  ///< what was written down before it is no value of a call

  /// What stands for the slot's value: one leaf, whoever asks.
  Tensor value_of(const std::shared_ptr<Slot>& slot);
  void add_drawn(const Tensor& leaf, std::function<Tensor()> next) { drawn.push_back({leaf, std::move(next)}); }
  static std::uint64_t next_id();
};

/// That of the function which this thread runs; null where there is none.
Capture* capturing();

/// Runs what this thread runs under `capture`, or under none, until it ends.
class Capturing {
 public:
  explicit Capturing(Capture* capture);
  ~Capturing();
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;

 private:
  Capture* before_;
};

}  // namespace clnet

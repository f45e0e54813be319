// The facts that a function under compile() reads besides its inputs. The readers of these facts register them here.
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

/// Stand-in for the value of an input or a slot, which changes from call to call: a value that depends on it cannot be read.
struct InputValue : Value {};

/// An effect on a value that exists: one of every call, or one that an evaluation left.
struct CallEffect {
  Tensor value;
  std::shared_ptr<Effect> effect;
};

struct Capture {
  /// A leaf that changes from call to call: its first value, and the source of the next ones.
  template <class From>
  struct Changing {
    Tensor leaf;  ///< held, so that no other node gets its address
    From from;
  };
  std::unordered_map<const Node*, Changing<std::shared_ptr<Slot>>> slots;  ///< stand-ins of slots' values
  std::unordered_map<const Slot*, Tensor> stand_ins;
  std::vector<Changing<std::function<Tensor()>>> drawn;  ///< seeds and offsets of random numbers, in the program's order
  std::vector<std::function<bool()>> conditions;         ///< each tells whether a host decision still holds
  /// Settings of the function on the host, by address. A call that does not run the function repeats each.
  std::unordered_map<const void*, std::function<void()>> settings;
  std::vector<CallEffect> effects;
  bool keeps_values = false;                          ///< for one call: slots have no stand-ins
  const std::uint64_t id = next_id();                 ///< never 0, unique in the process
  const std::uint64_t first = Node::next_sequence();  ///< earlier nodes do not belong to a call

  /// The stand-in for the slot's value, the same leaf for all callers; or the value itself with keeps_values.
  Tensor value_of(const std::shared_ptr<Slot>& slot);
  void add_drawn(const Tensor& leaf, std::function<Tensor()> next) { drawn.push_back({leaf, std::move(next)}); }
  static std::uint64_t next_id();
};

/// The capture of the function that this thread runs, or null.
Capture* capturing();

/// Sets this thread's capture, or none, while it lives.
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

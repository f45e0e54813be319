// A random program: leaves and calls of the public API in order, with what is evaluated when. It can be built again with other
// values in its leaves, cut down, and printed as C++.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "tests/cases/case.h"

namespace clnet::fuzz {

using testing::Array;
using Tensors = std::vector<Tensor>;
/// The bytes of some values, in order.
using Storage = std::vector<std::vector<std::byte>>;
/// Computes them.
Storage read_storage(const Tensors& tensors);

/// A value of a program: an output of a step.
struct Ref {
  std::size_t step = 0, output = 0;
  auto operator<=>(const Ref&) const = default;
};

/// How a leaf is filled.
enum class Fill : std::uint8_t {
  smooth,   ///< floats from low to high, all different
  grid,     ///< floats from low to high in quarters: ties and zeros
  integers  ///< whole numbers from low to high, for every dtype
};

struct Leaf {
  Spec spec;
  Fill fill = Fill::smooth;
  double low = -2, high = 2;
};

/// A leaf's values, rounded to its dtype; `seed` is the program's and the leaf's place in it.
Array leaf_values(const Leaf& leaf, std::uint64_t seed);
/// A tensor of these values; for programs that were printed, too.
Tensor leaf_tensor(const Array& values, Dtype dtype);
inline Tensor leaf(const Spec& spec, Fill fill, double low, double high, std::uint64_t seed) {
  return leaf_tensor(leaf_values({spec, fill, low, high}, seed), spec.dtype);
}

struct Step {
  std::string op;    ///< the name in the table of operations; "leaf"; "gradients", "detach" and others without an entry
  std::string code;  ///< C++ with $0, $1, ... for the inputs
  std::vector<Ref> inputs;
  std::function<Tensors(const Tensors&)> make;
  Leaf leaf;
  std::vector<Spec> outputs;
  int times = 0;          ///< of a step "follow"
  std::size_t group = 0;  ///< neighbours of one group, not 0, are made within one checkpoint()

  bool is_leaf() const { return op == "leaf"; }
};

/// Values that are evaluated in one call, once the steps before `at` have been made.
struct Evaluation {
  std::size_t at = 0;
  std::vector<Ref> values;
};

struct Program {
  std::uint64_t seed = 0;
  std::vector<Step> steps;
  std::vector<Evaluation> evaluations;  ///< by `at`
  bool lets_go =
      false;  ///< of all tensors but leaves and wanted ones before the last evaluation, as a function that returns these

  const Spec& spec(const Ref& ref) const { return steps[ref.step].outputs[ref.output]; }
};

/// A slot that begins with ones and becomes half of itself plus the value, so many times, when the value is computed.
struct Followed {
  nn::Parameter slot;
  Tensor value;
  int times;
  bool at_once;  ///< its value was there already: a leaf, or what CLNET_EAGER=1 evaluated
};
Followed follow(const Tensor& value, int times);

/// A program that was carried out: its tensors by step, and its leaves' values.
struct Built {
  std::vector<Tensors> tensors;
  std::vector<std::pair<Tensor, Array>> leaves;
  std::vector<std::pair<Tensor, Tensor>> detached;  ///< copies without history, and what they are copies of
  std::vector<Followed> followed;
  std::vector<Tensor> wanted;  ///< what was evaluated, in order

  const Tensor& operator[](const Ref& ref) const { return tensors[ref.step][ref.output]; }
  /// What is judged: the wanted values, and what has become of the slots.
  std::vector<Tensor> results() const;
};

/// Makes the program's graph with the leaves of this round, and evaluates on the way as the program says. `again`: a program that
/// was built in the same round, whose leaves serve once more.
Built build(const Program& program, std::uint64_t round, const Built* again = nullptr);

/// From now on operations take turns, as the seed says, on these devices, to which copies of what they read go.
void spread_over(std::vector<Device> devices);

/// The program without steps that nothing needs, its references counted anew.
Program without_unused(const Program& program);
/// The program with a step's outputs as leaves: those that are read stand in its place.
Program with_leaves(const Program& program, std::size_t k);

/// The program as the body of a C++ function.
std::string to_code(const Program& program);
std::string to_code(const Shape& shape);

}  // namespace clnet::fuzz

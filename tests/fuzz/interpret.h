// A graph's values on the host in double precision. The interpreter knows a node by its operation's name, fields and inputs; what
// an operation means comes from the tests' references. So it judges gradients, and gradients of gradients, like any other graph.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/graph/node.h"
#include "tests/cases/meaning.h"

namespace clnet::fuzz {

using testing::Array;
using testing::Arrays;

using testing::as_unsigned;
using testing::Call;
using testing::Meaning;
using Meanings = std::map<std::string_view, Meaning>;
Meanings elementwise_meanings(), shape_meanings(), reduce_meanings(), image_meanings(), normalize_meanings(),
    attention_meanings(), recurrent_meanings(), index_meanings();
/// Throws Error when there is no meaning for the operation.
const Meaning& meaning_of(std::string_view op);

/// How a device's arithmetic is imitated.
struct Arithmetic {
  bool rounds = true;        ///< each result is rounded to its dtype
  std::uint64_t wobble = 0;  ///< not 0: inputs and results of each operation are off by some roundings, as this number says; the
                             ///< same computation twice is off by the same
  double strength = 1;
  /// So many roundings of 1 more, whatever a result's size: functions of other programs are exact in these terms.
  double absolute = 0;
};

class Interpreter {
 public:
  explicit Interpreter(Arithmetic arithmetic) : arithmetic_(arithmetic) {}

  /// A value that is given and not computed, though it may have a history.
  void set(const Tensor& tensor, Array value);
  const Array& operator()(const Tensor& tensor);

 private:
  struct Result {
    Arrays values;
    std::uint64_t hash = 0;
  };
  void compute(const std::shared_ptr<Node>& node);
  void read_leaf(const std::shared_ptr<Node>& node, Result& result);
  /// Moves each element by up to `relative` of itself and `absolute`, either way.
  static void wobble(Array& array, double relative, double absolute, std::uint64_t hash);
  /// As operation, fields and inputs say; of leaves, their content.
  std::uint64_t hash_of(const Node& node) const;

  Arithmetic arithmetic_;
  std::map<std::pair<const Node*, int>, Array> given_;
  std::unordered_map<const Node*, Result> results_;
};

}  // namespace clnet::fuzz

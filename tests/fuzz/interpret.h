// A graph's values on the host in double precision. The interpreter knows a node by its operation's name, fields and inputs; what
// an operation means comes from the tests' references. So it judges gradients, and gradients of gradients, like any other graph.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/graph/node.h"
#include "tests/cases/case.h"

namespace clnet::fuzz {

using testing::Array;
using testing::Arrays;

/// A node with its inputs' values.
struct Call {
  const Node& node;
  Arrays in;

  const Shape& shape(std::size_t output = 0) const { return node.outputs[output].shape; }
  Dtype dtype(std::size_t output = 0) const { return node.outputs[output].dtype; }
  const Shape& input_shape(std::size_t input) const { return node.inputs[input].shape(); }
  /// A field's value. Throws Error, naming operation and field, when there is none.
  double number(std::string_view field) const;
  std::int64_t integer(std::string_view field) const { return static_cast<std::int64_t>(number(field)); }
  bool flag(std::string_view field) const { return number(field) != 0; }
  std::vector<std::int64_t> list(std::string_view field) const;
};

/// A scalar of i64 as bits without a sign.
inline std::uint64_t as_unsigned(const Array& scalar) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(scalar[0])); }

struct Rule {
  Arrays (*apply)(const Call& call) = nullptr;
  bool exact = false;  ///< results are inputs' values, whole numbers or truth values: nothing is computed in floating point
  double slack = 1;    ///< how many times the rounding errors of a plain sum are to be expected
  /// Where terms inside the operation may cancel: the sizes of the first output's terms, whose rounding errors are its own.
  Array (*terms)(const Call& call) = nullptr;
};
using Rules = std::map<std::string_view, Rule>;
Rules elementwise_rules(), shape_rules(), reduce_rules(), image_rules(), normalize_rules(), attention_rules(), recurrent_rules(),
    index_rules();
/// Throws Error when there is no rule for the operation.
const Rule& rule_of(std::string_view op);

/// How a device's arithmetic is imitated.
struct Arithmetic {
  bool rounds = true;        ///< each result is rounded to its dtype
  std::uint64_t wobble = 0;  ///< not 0: inputs and results of each operation are off by some roundings, as this number says; the
                             ///< same computation twice is off by the same
  double strength = 1;
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

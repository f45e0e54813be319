// One call of each operation of the catalogue, with its reference in double precision; the two are joined by name. The catalogue
// says which dtypes the call takes and how exact it is, the example what the operands' shapes are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/ops/catalogue.h"
#include "tests/cases/elementwise/elementwise.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

struct Example {
  std::string operation;  ///< in the catalogue
  /// In the order of the catalogue's operands, then those that may be left out. f32: the dtype under test, from the catalogue's
  /// range.
  std::vector<Input> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> run;
  std::function<Array(const Arrays&)> reference;
  std::string note = {};                              ///< behind the name, where an operation has several examples
  std::optional<ops::Gives> gives = {};               ///< unlike the catalogue's
  std::function<Array(const Arrays&)> of_bools = {};  ///< where it means something else of bool
};

/// Of all operations of the catalogue. Throws Error naming those that have none.
const std::vector<Example>& examples();

Example unary(const std::string& name, Tensor (*function)(const Tensor&), double (*formula)(double), const std::string& note = {},
              std::optional<ops::Gives> gives = {});
Example binary(const std::string& name, Tensor (*function)(const Tensor&, const Tensor&), double (*formula)(double, double));
/// Of a function that only moves elements; `source` says where each comes from, as in tests/cases/shape/rearrange.h.
Example arrangement(const std::string& name, const Shape& from, const Shape& to, std::function<Tensor(const Tensor&)> function,
                    std::function<std::optional<Coordinates>(const Coordinates&)> source);

std::vector<Example> elementwise_examples(), number_examples(), shape_examples(), reduce_examples(), product_examples(),
    composed_examples(), volume_examples(), index_examples();

}  // namespace clnet::testing

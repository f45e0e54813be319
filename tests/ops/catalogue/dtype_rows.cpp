#include <fmt/format.h>

#include "tests/cases/elementwise/catalogued.h"
#include "tests/ops/catalogue/dtypes.h"
#include "tests/ops/check.h"

namespace clnet::testing {

bool takes(ops::Takes what, Dtype dtype) {
  switch (what) {
    case ops::Takes::all: return true;
    case ops::Takes::numbers: return dtype != Dtype::boolean;
    case ops::Takes::floats: return is_floating(dtype);
    case ops::Takes::whole: return !is_floating(dtype);
    case ops::Takes::integers: return !is_floating(dtype) && dtype != Dtype::boolean;
    case ops::Takes::i64: return dtype == Dtype::i64;
    default: return dtype == Dtype::boolean;
  }
}

Dtype result_dtype(ops::Gives what, Dtype dtype) {
  switch (what) {
    case ops::Gives::same: return dtype;
    case ops::Gives::with_number: return dtype == Dtype::boolean ? Dtype::i64 : dtype;
    case ops::Gives::boolean: return Dtype::boolean;
    case ops::Gives::sums: return is_floating(dtype) ? dtype : Dtype::i64;
    case ops::Gives::index: return Dtype::i64;
    default: return Dtype::f32;
  }
}

std::vector<Input> drawn_inputs(const Example& example) {
  const auto& operands = ops::catalogued(example.operation).operands;
  auto inputs = example.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype == Dtype::f32)
      inputs[i] = drawn(i < operands.size() ? operands[i] : ops::Operand{}, inputs[i].shape, 0.5, 2);
  return inputs;
}

std::vector<Tensor> example_tensors(const Example& example) {
  const auto takes = ops::catalogued(example.operation).takes;
  std::vector<Tensor> tensors;
  for (const auto& input : drawn_inputs(example)) {
    auto values = make_values(input, tensors.size() + 1);
    tensors.push_back(to_tensor(values, input.dtype));
    if (takes == ops::Takes::bools) tensors.back() = tensors.back() > 1;
    if (takes == ops::Takes::whole || takes == ops::Takes::integers) tensors.back() = cast(tensors.back(), Dtype::i32);
  }
  return tensors;
}

std::string dtype_row(const Example& example) {
  const auto& operation = ops::catalogued(example.operation);
  const auto result = [&](Dtype dtype) {
    return takes(operation.takes, dtype) ? to_string(result_dtype(example.gives.value_or(operation.gives), dtype)) : "refused";
  };
  return fmt::format("| `{}`{} | {} | {} | {} | {}{}{} |", example.operation, example.note, result(Dtype::f16),
                     result(Dtype::i32), result(Dtype::boolean), operation.roundings,
                     operation.dtype_roundings == 1 ? "" : fmt::format(", and {} of the dtype", operation.dtype_roundings),
                     operation.cut_off ? ", cut off to the dtype's steps below 1" : "");
}

}  // namespace clnet::testing

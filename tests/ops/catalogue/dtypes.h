// What the catalogue says of dtypes.
#pragma once

#include <string>
#include <vector>

#include "tests/ops/catalogue/examples.h"

namespace clnet::testing {

bool takes(ops::Takes what, Dtype dtype);
Dtype result_dtype(ops::Gives what, Dtype dtype);
/// The example's inputs with the catalogue's ranges, by default from 0.5 to 2.
std::vector<Input> drawn_inputs(const Example& example);
/// Tensors for drawn_inputs(), f32 where the dtype is left open; bool of operations that take nothing else.
std::vector<Tensor> example_tensors(const Example& example);
/// An example's line in the tables of docs/reference/ops-*.md.
std::string dtype_row(const Example& example);

}  // namespace clnet::testing

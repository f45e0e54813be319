// From PyTorch's functions, by the names that OpInfo has for them, to clnet's.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/torch/opinfo/args.h"

namespace clnet::torch::opinfo {

using Outputs = std::vector<Tensor>;
using Adapter = std::function<Outputs(const Args&)>;
using Adapters = std::map<std::string, Adapter>;

void add_elementwise(Adapters& adapters);
void add_functions(Adapters& adapters);
void add_indexed(Adapters& adapters);
void add_joined(Adapters& adapters);
void add_layers(Adapters& adapters);
void add_losses(Adapters& adapters);
void add_made(Adapters& adapters);
void add_norms(Adapters& adapters);
void add_ordered(Adapters& adapters);
void add_pools(Adapters& adapters);
void add_products(Adapters& adapters);
void add_reductions(Adapters& adapters);
void add_shapes(Adapters& adapters);
void add_special(Adapters& adapters);
const Adapters& all_adapters();

/// The results of a call; throws Failed for a name without an adapter and for arguments that nothing reads, LeftOut for a call
/// that clnet leaves out.
Outputs call(const std::string& name, const Args& args);

/// An adapter that gives one tensor.
template <class Function>
Adapter one(Function function) {
  return [function](const Args& in) { return Outputs{function(in)}; };
}
/// Throws LeftOut for tensors of several dtypes, which clnet does not promote.
void require_one_dtype(const std::vector<Tensor>& tensors);

// What several files use.
std::vector<int> to_ints(const std::vector<std::int64_t>& values);
int positive_dim(const Tensor& x, int dim);
/// The elements in row order.
Tensor as_line(const Tensor& x);

}  // namespace clnet::torch::opinfo

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
using Unary = Tensor (*)(const Tensor&);

/// A function's overloads of two tensors, and of a tensor and a number.
struct Binary {
  Tensor (*tensors)(const Tensor&, const Tensor&);
  Tensor (*before)(const Tensor&, double);
  Tensor (*behind)(double, const Tensor&);

  Tensor operator()(const Operand& a, const Operand& b) const {
    const auto *x = std::get_if<Tensor>(&a), *y = std::get_if<Tensor>(&b);
    if (x == nullptr && y == nullptr) throw Failed("two numbers, no tensor");
    if (x == nullptr) return behind(std::get<double>(a), *y);
    if (y == nullptr) return before(*x, std::get<double>(b));
    require_one_dtype({*x, *y});
    return tensors(*x, *y);
  }
};

inline Adapter unary(Unary function) {
  return one([function](const Args& in) { return function(in.tensor(0)); });
}
inline Adapter binary(const Binary& function) {
  return one([function](const Args& in) { return function(in.operand(0, "input"), in.operand(1, "other")); });
}
/// The other operand first.
inline Adapter reflected(const Binary& function) {
  return one([function](const Args& in) { return function(in.operand(1, "other"), in.operand(0, "input")); });
}
std::vector<int> to_ints(const std::vector<std::int64_t>& values);
int positive_dim(const Tensor& x, int dim);
/// The elements in row order.
Tensor as_line(const Tensor& x);

}  // namespace clnet::torch::opinfo

// A function of tensors whose graph is built once and run again and again.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// What compile() keeps; use that.
class CLNET_API CompiledCalls {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  CompiledCalls();
  std::vector<Tensor> call(const Function& f, const std::vector<Tensor>& inputs) const;
  std::size_t graphs() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// See compile(). Copies share what they have built.
template <class F>
class Compiled {
 public:
  explicit Compiled(F f) : f_(std::make_shared<F>(std::move(f))) {}

  /// What f returns: a tensor, a vector of them, or a tuple, pair or array. The results are values already; no gradient flows
  /// through them.
  template <class... T>
  requires(...&& std::convertible_to<const T&, Tensor>) auto operator()(const T&... inputs) const {
    using Result = std::decay_t<decltype((*f_)(Tensor(inputs)...))>;
    const std::vector<Tensor> all{Tensor(inputs)...};
    auto results =
        calls_.call([&](const std::vector<Tensor>& given) { return flat(invoke(given, std::index_sequence_for<T...>{})); }, all);
    if constexpr (std::is_same_v<Result, Tensor>)
      return std::move(results.at(0));
    else if constexpr (std::is_same_v<Result, std::vector<Tensor>>)
      return results;
    else
      return together<Result>(results, std::make_index_sequence<std::tuple_size_v<Result>>{});
  }

  /// How many graphs have been built.
  std::size_t graphs() const { return calls_.graphs(); }

 private:
  template <std::size_t... I>
  auto invoke(const std::vector<Tensor>& given, std::index_sequence<I...>) const {
    return (*f_)(given[I]...);
  }
  static std::vector<Tensor> flat(const Tensor& result) { return {result}; }
  static std::vector<Tensor> flat(std::vector<Tensor> results) { return results; }
  template <class Tuple>
  requires requires { std::tuple_size<Tuple>::value; }
  static std::vector<Tensor> flat(const Tuple& results) {
    return std::apply([](const auto&... each) { return std::vector<Tensor>{each...}; }, results);
  }
  template <class Tuple, std::size_t... I>
  static Tuple together(std::vector<Tensor>& results, std::index_sequence<I...>) {
    return Tuple{std::move(results.at(I))...};
  }

  std::shared_ptr<F> f_;
  CompiledCalls calls_;
};

/// Calls f with stand-ins for its inputs, once for each combination of their shapes and dtypes, keeps the graph and its plan, and
/// from then on only runs the plan: a call costs the host little more than its launches. As in
///
///   auto infer = compile([&](const Tensor& x) { return softmax(model(x), 1); });
///   auto step = compile([&](const Tensor& x, const Tensor& y) {
///     const Tensor loss = cross_entropy(model(x), y);
///     auto results = gradients(loss, model.parameters());
///     results.push_back(loss);
///     return results;
///   });
///
/// In each call parameters and buffers have their present values, random numbers are new ones, and what follows a value
/// (Parameter::follow, running statistics) is updated as the call ends. Modes that f sets are set by every call. Where f asked
/// whether a module is in training, which layer has replaced another, or in which Autocast it is called, another answer builds
/// another graph; up to 64 are kept. Everything else that f looks at on the host (numbers, flags, tensors that are no parameters)
/// stays as it was in the first call.
///
/// f may only build graph: reading or detaching a value that depends on its inputs or on parameters, setting parameters, and
/// Optimizer::step throw Error; stop_gradient() is graph, and a step is made with Optimizer::apply outside. A function of no
/// inputs, with results that depend on nothing but parameters, is one, too. Calls of a compiled function within another one
/// belong to the outer one's graph. Errors of f leave the function through the call. Calls from several threads are right as
/// evaluation is (docs/developer/guarantees.md); f itself runs in one at a time.
template <class F>
Compiled<F> compile(F f) {
  return Compiled<F>(std::move(f));
}

/// From now on `told` hears how far compiling has come wherever this process makes a device ready for a graph that it has not
/// computed before: how many of the kernels that are new to this machine are compiled, first 0 and at last all of them, several
/// times a second where the driver allows it. Kernels that only a driver's own cache on disk knows count, too, and are soon done.
/// Nobody is called where nothing is new to this machine.
/// When it returns false, the evaluation ends: it throws Error, nothing has changed, and what compiled is kept for the next time.
/// It is called on the thread that evaluates, on several at once where several do, and must not evaluate, which throws Error, or
/// set on_compile itself. What it throws leaves the evaluation likewise, as an Error that has its text. An empty function ends
/// it.
CLNET_API void on_compile(std::function<bool(std::size_t done, std::size_t total)> told);

}  // namespace clnet

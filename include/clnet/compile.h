// A function of tensors whose graph is built once and run many times.
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

/// The state of a compiled function. Use compile().
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

/// A compiled function: see compile(). Copies share their graphs.
template <class F>
class Compiled {
 public:
  explicit Compiled(F f) : f_(std::make_shared<F>(std::move(f))) {}

  /// Calls the function. The result has f's type: a tensor, or a vector, tuple, pair or array of tensors. The results are leaves;
  /// no gradient flows through them.
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

  /// The number of graphs built so far.
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

/// Compiles f, as torch.compile. The first call with a combination of input shapes and dtypes runs f on stand-ins and keeps the
/// graph and its plan. Later calls only run the plan: the host's part is little more than the launches.
///
///   auto infer = compile([&](const Tensor& x) { return softmax(model(x), 1); });
///   auto step = compile([&](const Tensor& x, const Tensor& y) {
///     const Tensor loss = cross_entropy(model(x), y);
///     auto results = gradients(loss, model.parameters());
///     results.push_back(loss);
///     return results;
///   });
///
/// Each call uses the present values of parameters and buffers and draws new random numbers. Updates that follow a value
/// (Parameter::follow, running statistics) take place as the call ends. Every call sets the modes that f sets. A graph holds for
/// one answer to each of these questions: is a module in training, which layer replaces another, which Autocast is active?
/// Another answer builds another graph; up to 64 are kept. All else that f reads on the host (numbers, flags, tensors that are no
/// parameters) keeps its value from the first call.
///
/// f may only build graph. These throw Error: reading or detaching a value that depends on inputs or parameters, setting
/// parameters, and Optimizer::step. Use stop_gradient() inside, and Optimizer::apply outside. The same holds for a function
/// without inputs whose results depend on parameters only. A call of a compiled function within another one joins the outer
/// graph. While DetectAnomaly looks, each call runs f anew, on the inputs themselves. Exceptions of f pass through the call.
/// Several threads may call one compiled function, as they may evaluate (docs/developer/guarantees.md); f itself runs in one
/// thread at a time.
template <class F>
Compiled<F> compile(F f) {
  return Compiled<F>(std::move(f));
}

/// Reports progress of compiling. While this process prepares a device for a new graph, it calls `told` with `done` and `total`,
/// counts of the kernels that are new to this machine. The first call has 0, the last one all; the driver permitting, there are
/// several per second. Kernels in a driver's own cache on disk count, and are soon done. Without new kernels there is no call.
///
/// If `told` returns false, the evaluation throws Error and changes nothing; finished kernels are kept for the next time. An
/// exception of `told` has the same effect: its text becomes an Error. The evaluating thread calls `told`, so several threads may
/// call it at once. It must not evaluate (Error) nor call on_compile itself. An empty function ends the reports.
CLNET_API void on_compile(std::function<bool(std::size_t done, std::size_t total)> told);

}  // namespace clnet

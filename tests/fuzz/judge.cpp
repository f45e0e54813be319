#include "tests/fuzz/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/fuzz/interpret.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/rounding.h"

namespace clnet::fuzz {

namespace {

/// The graph behind some nodes, and they.
std::set<const Node*> graph_behind(std::vector<const Node*> open) {
  std::set<const Node*> known;
  while (!open.empty()) {
    const auto* node = open.back();
    open.pop_back();
    if (!known.insert(node).second) continue;
    for (const auto& input : node->inputs) open.push_back(node_of(input).get());
  }
  return known;
}

/// Whatever the program's evaluations computed.
std::set<const Node*> computed_nodes(const Built& built) {
  std::vector<const Node*> nodes;
  for (const auto& tensor : built.wanted) nodes.push_back(node_of(tensor).get());
  for (const auto& [copy, source] : built.detached) nodes.push_back(node_of(source).get());
  return graph_behind(std::move(nodes));
}

/// The values of Built::results() under one arithmetic.
std::vector<Array> interpret(const Built& built, const Arithmetic& arithmetic) {
  Interpreter interpreter(arithmetic);
  for (const auto& [leaf, values] : built.leaves) interpreter.set(leaf, values);
  for (const auto& [copy, source] : built.detached) interpreter.set(copy, interpreter(source));
  std::vector<Array> values;
  for (const auto& tensor : built.wanted) values.push_back(interpreter(tensor));
  const auto computed = computed_nodes(built);
  for (const auto& [slot, value, times, at_once] : built.followed) {
    const bool done = at_once || computed.count(node_of(value).get()) != 0;
    const auto& x = interpreter(value);
    auto& now = values.emplace_back(value.shape(), std::vector<double>(x.values.size(), 1.0));
    for (int i = 0; done && i < times; ++i)
      for (std::size_t k = 0; k < now.values.size(); ++k)
        now.values[k] = rounded(rounded(now.values[k] * 0.5, value.dtype()) + x.values[k], value.dtype());
  }
  return values;
}

/// How far the interpreter's runs with errors lie from the one without, element by element.
class Spread {
 public:
  explicit Spread(const Built& built, double absolute = 0) : built_(built), absolute_(absolute), base_(interpret(built, {})) {
    for (const auto& array : base_) distance_.emplace_back(array.values.size(), 0.0);
  }
  void add(std::uint64_t wobble, double strength) {
    const auto values = interpret(built_, {true, wobble, strength, absolute_});
    for (std::size_t k = 0; k < values.size(); ++k)
      for (std::size_t i = 0; i < values[k].values.size(); ++i) {
        const double off = std::fabs(values[k].values[i] - base_[k].values[i]);
        if (!(off <= distance_[k][i])) distance_[k][i] = std::isnan(off) ? INFINITY : off;
      }
  }
  const std::vector<Array>& base() const { return base_; }
  double distance(std::size_t k, std::size_t i) const { return distance_[k][i]; }
  double largest(std::size_t k) const {
    return distance_[k].empty() ? 0 : *std::max_element(distance_[k].begin(), distance_[k].end());
  }

 private:
  const Built& built_;
  double absolute_;
  std::vector<Array> base_;
  std::vector<std::vector<double>> distance_;
};

/// Whether the value depends on which element of a window was the largest, or on the order of several. Among many that differ by
/// rounding alone each may be it, and no number of runs meets them all.
bool picks_largest(const Tensor& value) {
  const auto nodes = graph_behind({node_of(value).get()});
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    if (!node->op) return false;
    const auto name = node->op->name();
    return name.starts_with("max_pool2d") || name == "argsort" || name == "topk" || name == "poisson" || name == "cummax" ||
           name == "cummin" || name == "searchsorted";
  });
}

}  // namespace

struct Judge::State {
  const Built& built;
  const Built* beside;
  Spread own;
  std::optional<Spread> others = {};
  std::uint64_t runs = 0;

  void run_until(std::uint64_t wanted) {
    while (runs < wanted) {
      ++runs;
      const double strength = runs > 3 && runs % 2 != 0 ? 4 : 1;
      own.add(runs, strength);
      if (others) others->add(runs, strength);
    }
  }
  /// Where the other graph gives no number, its roundings excuse nothing.
  double distance(std::size_t k, std::size_t i) const {
    const bool counts = others && std::isfinite(others->base()[k].values[i]);
    return own.distance(k, i) + (counts ? others->distance(k, i) : 0);
  }
  bool picks(std::size_t k, const Tensor& value) const {
    return picks_largest(value) || (beside && picks_largest(beside->wanted[k]));
  }
  double largest(std::size_t k) const { return own.largest(k) + (others ? others->largest(k) : 0); }
};

namespace {

/// `last`: there will be no more runs.
Verdict compare(const Judge::State& state, const Storage& results, bool last) {
  // Runs with random errors rarely meet the worst case.
  constexpr double clear = 6;
  Verdict verdict;
  const auto tensors = state.built.results();
  for (std::size_t k = 0; k < results.size(); ++k) {
    const auto& spec = tensors[k].spec();
    const auto got = from_storage(results[k], spec);
    const double jumps = last && state.picks(k, tensors[k]) ? clear * state.largest(k) : 0;
    double worst = 0;
    for (std::int64_t i = 0; i < got.numel(); ++i) {
      const double want = state.own.base()[k][i], distance = state.distance(k, static_cast<std::size_t>(i));
      ++verdict.elements;
      if (!std::isfinite(want) || !std::isfinite(distance)) continue;
      ++verdict.judged;
      const double allowed = clear * distance + 4 * unit(spec.dtype) * std::fabs(want) + 2 * tiniest(spec.dtype);
      const double error = std::fabs(got[i] - want);
      if (error <= allowed || error / allowed <= worst || error <= jumps) continue;
      worst = error / allowed;
      verdict.wanted = k;
      verdict.fault = fmt::format("value {} of the evaluation, {}: element {} is {}, not {} (off by {}, at most {} is rounding)",
                                  k, to_string(spec), i, got[i], want, error, allowed);
      if (std::isnan(error)) break;
    }
    if (verdict.fault) return verdict;
  }
  return verdict;
}

}  // namespace

Judge::Judge(const Built& built, const Built* beside, double absolute)
    : state_(std::make_unique<State>(State{built, beside, Spread(built)})) {
  if (beside) state_->others.emplace(*beside, absolute);
}
Judge::~Judge() = default;

Verdict Judge::operator()(const Storage& results) {
  state_->run_until(3);
  auto verdict = compare(*state_, results, false);
  if (!verdict.fault) return verdict;
  // A comparison, a rounding or a largest element may have fallen the other way: rare, so more runs are made only now.
  state_->run_until(40);
  return compare(*state_, results, true);
}

Verdict judge(const Built& built, const Storage& results) { return Judge(built)(results); }

Storage meant(const Built& built) {
  Storage result;
  const auto values = interpret(built, {});
  const auto tensors = built.results();
  for (std::size_t k = 0; k < values.size(); ++k) result.push_back(to_storage(values[k], tensors[k].dtype()));
  return result;
}

namespace {

/// Gradients of 0 by definition, and not because the loss did not depend on it: of embedding's padding, of stop_gradient.
bool defines_gradients(const Tensor& loss) {
  for (const auto* node : graph_behind({node_of(loss).get()})) {
    if (!node->op) continue;
    const auto other = node->op->differentiated();
    if (other && other->empty()) return true;
    if (node->op->name() == "index_select" && Call{*node, {}}.integer("constant") >= 0) return true;
  }
  return false;
}

std::string gradient_fault(const Program& program, const Built& built, std::size_t step) {
  const auto& inputs = program.steps[step].inputs;
  if (defines_gradients(built[inputs[0]])) return {};
  constexpr Arithmetic exact{false, 0, 1};
  // A little beside the program's values, where no two are equal and none is 0: kinks have no derivative.
  Arrays leaves;
  Rng noise(mix(program.seed, step));
  for (const auto& [leaf, values] : built.leaves) {
    leaves.push_back(values);
    for (auto& value : leaves.back().values)
      if (is_floating(leaf.dtype())) value += noise.between(-0.01, 0.01);
  }
  const auto prepared = [&] {
    Interpreter interpreter(exact);
    for (std::size_t k = 0; k < leaves.size(); ++k) interpreter.set(built.leaves[k].first, leaves[k]);
    return interpreter;
  };
  auto at_point = prepared();
  for (const auto& [copy, source] : built.detached) at_point.set(copy, at_point(source));
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const auto& x = built[inputs[i]];
    const Array point = at_point(x), gradient = at_point(built.tensors[step][i - 1]);
    Array direction(point.shape);
    Rng random(mix(program.seed, step * 16 + i));
    double slope = 0, size = 0;
    for (std::int64_t k = 0; k < point.numel(); ++k) {
      direction[k] = random.between(-1, 1);
      slope += direction[k] * gradient[k];
      size += std::fabs(direction[k] * gradient[k]);
    }
    const auto loss = [&](double distance) {
      auto interpreter = prepared();
      for (const auto& [copy, source] : built.detached) interpreter.set(copy, at_point(source));
      Array moved = point;
      for (std::int64_t k = 0; k < moved.numel(); ++k) moved[k] += distance * direction[k];
      interpreter.set(x, std::move(moved));
      return interpreter(built[inputs[0]])[0];
    };
    constexpr double distance = 1e-5;
    const double here = loss(0), before = (here - loss(-distance)) / distance, after = (loss(distance) - here) / distance;
    const double narrow = (loss(distance / 2) - loss(-distance / 2)) / distance, wide = (before + after) / 2;
    const double scale = size + std::fabs(wide) + 1e-6;
    // At a kink the slopes before and after it differ, and any between them will do.
    const bool smooth = std::fabs(wide - narrow) < 1e-4 * scale && std::isfinite(slope);
    if (smooth && std::fabs(slope - wide) > 1e-2 * scale + std::fabs(after - before))
      return fmt::format("step {}: the gradient by input {} gives {} along a direction where the loss has slope {}", step, i,
                         slope, wide);
  }
  return {};
}

}  // namespace

std::optional<std::string> check_gradients(const Program& program, const Built& built) {
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    if (program.steps[step].op != "gradients") continue;
    if (auto fault = gradient_fault(program, built, step); !fault.empty()) return fault;
  }
  return std::nullopt;
}

}  // namespace clnet::fuzz

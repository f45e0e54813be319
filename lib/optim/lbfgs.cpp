#include "clnet/optim/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "clnet/autograd.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/nn/reached.h"
#include "lib/optim/line_search.h"
#include "lib/optim/options.h"
#include "lib/optim/state_reader.h"

namespace clnet::optim {

namespace {

/// A change of the parameters and the change of the gradient that it made.
struct Pair {
  Tensor move, turn;
  double inverse;  ///< of their product
};

/// All that one step hands to the next.
struct Memory {
  std::int64_t iterations = 0, evaluations = 0;
  std::deque<Pair> pairs;
  Tensor direction, gradient;     ///< of the last iteration
  double distance = 0, loss = 0;  ///< of the last iteration
  double curvature = 1;           ///< the inverse Hessian's first guess is this times the identity
};

double product_of(const Tensor& a, const Tensor& b) { return sum(a * b).item<double>(); }
double largest(const Tensor& a) { return a.numel() == 0 ? 0 : max(abs(a)).item<double>(); }
Tensor evaluated(const Tensor& a) {
  a.eval();
  return a.detach();
}

/// Minus the inverse Hessian times the gradient, from the pairs. Each round is evaluated: of any number of pairs there are two
/// plans.
Tensor quasi_newton(const Memory& memory, const Tensor& gradient) {
  Tensor q = evaluated(-gradient);
  std::vector<Tensor> shares(memory.pairs.size());
  for (std::size_t i = memory.pairs.size(); i-- > 0;) {
    const auto& [move, turn, inverse] = memory.pairs[i];
    const Tensor share = sum(move * q) * inverse, next = q - turn * share;
    eval({share, next});
    shares[i] = share.detach();
    q = next.detach();
  }
  Tensor r = evaluated(q * memory.curvature);
  for (std::size_t i = 0; i < memory.pairs.size(); ++i) {
    const auto& [move, turn, inverse] = memory.pairs[i];
    r = evaluated(r + move * (shares[i] - sum(turn * r) * inverse));
  }
  return r;
}

}  // namespace

struct LBFGS::Impl {
  LBFGSOptions options;
  nn::NamedParameters parameters;
  Memory memory;

  std::int64_t elements() const {
    std::int64_t count = 0;
    for (const auto& [name, parameter] : parameters) count += parameter.value().numel();
    return count;
  }

  std::vector<Tensor> values() const {
    std::vector<Tensor> result;
    for (const auto& [name, parameter] : parameters) result.push_back(parameter.value());
    return result;
  }

  /// Sets only what has changed: a value that waits would be evaluated first, which may throw.
  void restore(const std::vector<Tensor>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (nn::Parameter parameter = parameters[i].second; !parameter.value().same(values[i])) parameter.set(values[i]);
  }

  /// Loss and gradient at the present values, of what is to be least; the slope is not asked for.
  Reached evaluate(const std::function<Tensor()>& make) const {
    Tensor loss = make();
    if (!loss.defined()) throw Error("LBFGS: the loss is undefined");
    if (options.maximize) loss = -loss;
    const auto leaves = nn::reached_leaves("LBFGS", loss, parameters);
    std::vector<Tensor> reached;
    for (const auto& leaf : leaves)
      if (leaf.defined()) reached.push_back(leaf);
    const auto given = gradients(loss, reached);
    std::vector<Tensor> parts;
    for (std::size_t i = 0, next = 0; i < leaves.size(); ++i) {
      const auto count = parameters[i].second.value().numel();
      if (count == 0) continue;
      parts.push_back(leaves[i].defined() ? reshape(cast(given[next], Dtype::f32), {count}) : zeros({count}));
      if (leaves[i].defined()) ++next;
    }
    const Tensor gradient = concat(parts, 0);
    eval({loss, gradient});
    return {0, loss.item<double>(), 0, gradient.detach()};
  }

  /// The parameters at `from` plus so much of the direction.
  void move(const std::vector<Tensor>& from, const Tensor& direction, double distance) const {
    std::vector<std::pair<nn::Parameter, Tensor>> next;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto& spec = from[i].spec();
      const auto begin = at;
      at += spec.shape.numel();
      if (spec.shape.numel() == 0 || parameters[i].second.frozen()) continue;
      const Tensor part = reshape(slice(direction, 0, begin, at), spec.shape);
      next.emplace_back(parameters[i].second, cast(cast(from[i], Dtype::f32) + part * distance, spec.dtype));
    }
    nn::assign(next);
  }

  void remember_pair(const Tensor& gradient) {
    const Tensor turn = evaluated(gradient - memory.gradient), way = evaluated(memory.direction * memory.distance);
    const double product = product_of(turn, way);
    if (!(product > 1e-10)) return;
    if (static_cast<std::int64_t>(memory.pairs.size()) == options.history_size) memory.pairs.pop_front();
    memory.pairs.push_back({way, turn, 1 / product});
    memory.curvature = product / product_of(turn, turn);
  }

  double step(const std::function<Tensor()>& make) {
    const auto most = options.max_eval > 0 ? options.max_eval : options.max_iter * 5 / 4;
    auto now = evaluate(make);
    const double first = options.maximize ? -now.loss : now.loss;
    std::int64_t evaluations = 1;
    ++memory.evaluations;
    if (largest(now.gradient) <= options.tolerance_grad) return first;
    for (std::int64_t i = 1; i <= options.max_iter; ++i) {
      ++memory.iterations;
      if (memory.iterations == 1) {
        memory.direction = evaluated(-now.gradient);
        memory.pairs.clear();
        memory.curvature = 1;
      } else {
        remember_pair(now.gradient);
        memory.direction = quasi_newton(memory, now.gradient);
      }
      memory.gradient = now.gradient;
      memory.loss = now.loss;
      memory.distance = options.learning_rate;
      if (memory.iterations == 1) memory.distance *= std::min(1.0, 1 / sum(abs(now.gradient)).item<double>());
      now.slope = product_of(now.gradient, memory.direction);
      if (now.slope > -options.tolerance_change) break;

      const auto from = values();
      std::int64_t made = 0;
      if (options.strong_wolfe) {
        const auto go = [&](double distance) {
          move(from, memory.direction, distance);
          auto at = evaluate(make);
          ++made;
          at.distance = distance;
          at.slope = product_of(at.gradient, memory.direction);
          return at;
        };
        now.distance = 0;
        now = strong_wolfe(go, now, memory.distance, largest(memory.direction), {.most = most - evaluations});
        memory.distance = now.distance;
        move(from, memory.direction, memory.distance);
      } else {
        move(from, memory.direction, memory.distance);
        if (i < options.max_iter) now = evaluate(make), made = 1;
      }
      evaluations += made;
      memory.evaluations += made;
      if (i == options.max_iter || evaluations >= most) break;
      if (largest(now.gradient) <= options.tolerance_grad) break;
      if (largest(memory.direction) * std::abs(memory.distance) <= options.tolerance_change) break;
      if (std::abs(now.loss - memory.loss) < options.tolerance_change) break;
    }
    return first;
  }
};

LBFGS::LBFGS(const Parameters& parameters, const LBFGSOptions& o) : impl_(std::make_shared<Impl>()) {
  require_positive_or_zero("LBFGS", "learning_rate", o.learning_rate);
  require(o.max_iter >= 1 && o.max_iter <= std::int64_t{1} << 32, "LBFGS", "max_iter", static_cast<double>(o.max_iter));
  require(o.max_eval >= 0, "LBFGS", "max_eval", static_cast<double>(o.max_eval));
  require(o.history_size >= 1, "LBFGS", "history_size", static_cast<double>(o.history_size));
  require_positive_or_zero("LBFGS", "tolerance_grad", o.tolerance_grad);
  require_positive_or_zero("LBFGS", "tolerance_change", o.tolerance_change);
  impl_->options = o;
  impl_->parameters = parameters.list();
  for (std::size_t i = 0; i < impl_->parameters.size(); ++i) {
    const auto& [name, parameter] = impl_->parameters[i];
    if (const auto spec = parameter.value().spec(); !is_floating(spec.dtype))
      throw DtypeError(fmt::format("LBFGS: {} is {}, which has no gradient", name, to_string(spec)));
    else
      refuse_f64("LBFGS", name, spec);
    for (std::size_t j = 0; j < i; ++j)
      if (impl_->parameters[j].second.same(parameter)) throw Error(fmt::format("LBFGS: {} is optimized already", name));
  }
}

double LBFGS::step(const std::function<Tensor()>& loss) {
  if (!loss) throw Error("LBFGS: step() without a loss");
  const auto values = impl_->values();
  auto memory = impl_->memory;
  try {
    return impl_->step(loss);
  } catch (...) {
    impl_->memory = std::move(memory);
    impl_->restore(values);
    throw;
  }
}

double LBFGS::learning_rate() const { return impl_->options.learning_rate; }
void LBFGS::set_learning_rate(double rate) {
  require_positive_or_zero("LBFGS", "the learning rate", rate);
  impl_->options.learning_rate = rate;
}
std::int64_t LBFGS::iterations() const { return impl_->memory.iterations; }
std::int64_t LBFGS::evaluations() const { return impl_->memory.evaluations; }

io::StateDict LBFGS::state_dict() const {
  const auto& m = impl_->memory;
  const auto count = [](std::int64_t value) { return Tensor::scalar(static_cast<double>(value), Dtype::i64); };
  io::StateDict result{{"n_iter", count(m.iterations)}, {"func_evals", count(m.evaluations)}};
  if (m.iterations == 0) return result;
  result.insert(result.end(), {{"d", m.direction},
                               {"prev_flat_grad", m.gradient},
                               {"t", state_number(m.distance)},
                               {"H_diag", state_number(m.curvature)},
                               {"prev_loss", state_number(m.loss)}});
  for (std::size_t i = 0; i < m.pairs.size(); ++i) {
    result.emplace_back(fmt::format("old_dirs.{}", i), m.pairs[i].turn);
    result.emplace_back(fmt::format("old_stps.{}", i), m.pairs[i].move);
    result.emplace_back(fmt::format("ro.{}", i), state_number(m.pairs[i].inverse));
  }
  return result;
}

void LBFGS::load_state_dict(const io::StateDict& state) {
  StateReader reader(state);
  const Spec vector{{impl_->elements()}, Dtype::f32};
  Memory m;
  m.iterations = reader.count("n_iter");
  m.evaluations = reader.count("func_evals");
  if (m.iterations > 0) {
    m.direction = reader.take("d", vector);
    m.gradient = reader.take("prev_flat_grad", vector);
    m.distance = reader.number("t");
    m.curvature = reader.number("H_diag");
    m.loss = reader.number("prev_loss");
    for (std::int64_t i = 0; i < impl_->options.history_size && reader.has(fmt::format("old_dirs.{}", i)); ++i) {
      const auto turn = reader.take(fmt::format("old_dirs.{}", i), vector);
      const auto move = reader.take(fmt::format("old_stps.{}", i), vector);
      m.pairs.push_back({move, turn, reader.number(fmt::format("ro.{}", i))});
    }
  }
  reader.require_fit("optimizer");
  impl_->memory = std::move(m);
}

}  // namespace clnet::optim

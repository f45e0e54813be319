#include "clnet/optim/find_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops/random.h"
#include "lib/optim/options.h"

namespace clnet::optim {

namespace {

/// What a search changes, as it was before.
class Before {
 public:
  Before(const nn::Module& module, const Optimizer& optimizer) : state_(optimizer.state_dict()), random_(random_state()) {
    // The optimizer may have groups of other modules, too. A state_dict() has no buffers that are not saved.
    for (const auto& list : {module.parameters(), module.buffers(), optimizer.parameters()})
      for (const auto& [name, parameter] : list) values_.emplace_back(parameter, parameter.value());
    // What waits to be computed is computed now, of what there is now.
    std::vector<Tensor> all;
    for (const auto& [name, tensor] : state_) all.push_back(tensor);
    for (const auto& [parameter, value] : values_) all.push_back(value);
    eval(all);
  }
  void restore(Optimizer& optimizer) const {
    for (const auto& [parameter, value] : values_) nn::Parameter(parameter).set(value);
    optimizer.load_state_dict(state_);
    set_random_state(random_);
  }

 private:
  io::StateDict state_;
  RandomState random_;
  std::vector<std::pair<nn::Parameter, Tensor>> values_;
};

/// The rate at which the curve falls most steeply; the rates are in equal ratios.
double steepest(const RateCurve& curve) {
  double best = 0, rate = 0;
  const auto& y = curve.losses;
  for (std::size_t i = 0; i + 1 < y.size(); ++i) {
    const auto before = i == 0 ? 0 : i - 1;
    const double slope = (y[i + 1] - y[before]) / static_cast<double>(i + 1 - before);
    if (slope < best) best = slope, rate = curve.rates[i];
  }
  return rate;
}

RateCurve search(Optimizer& optimizer, const std::function<Tensor()>& loss, const FindRateOptions& o) {
  RateCurve curve;
  double average = 0, best = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < o.steps; ++i) {
    const double rate = o.first * std::pow(o.last / o.first, static_cast<double>(i) / static_cast<double>(o.steps - 1));
    optimizer.set_learning_rate(rate);
    average = average * (1 - o.smoothing) + o.smoothing * optimizer.step(loss()).item<double>();
    const double smooth = average / (1 - std::pow(1 - o.smoothing, static_cast<double>(i + 1)));
    if (!std::isfinite(smooth)) break;
    curve.rates.push_back(rate);
    curve.losses.push_back(smooth);
    best = std::min(best, smooth);
    if (o.divergence > 0 && i > 0 && smooth > o.divergence * std::abs(best)) break;
  }
  return curve;
}

}  // namespace

RateCurve find_learning_rate(nn::Module& module, Optimizer& optimizer, const std::function<Tensor()>& loss,
                             const FindRateOptions& o) {
  constexpr auto who = "find_learning_rate";
  if (!optimizer) throw Error(fmt::format("{}: the optimizer was never made", who));
  if (!loss) throw Error(fmt::format("{}: without a loss", who));
  require(o.first > 0 && std::isfinite(o.first), who, "first", o.first);
  require(o.last > o.first && std::isfinite(o.last), who, "last", o.last);
  require(o.steps >= 2, who, "steps", static_cast<double>(o.steps));
  require(o.smoothing > 0 && o.smoothing <= 1, who, "smoothing", o.smoothing);
  require_positive_or_zero(who, "divergence", o.divergence);

  const Before before(module, optimizer);
  try {
    auto curve = search(optimizer, loss, o);
    before.restore(optimizer);
    curve.suggestion = steepest(curve);
    return curve;
  } catch (...) {
    before.restore(optimizer);
    throw;
  }
}

}  // namespace clnet::optim

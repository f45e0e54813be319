#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "clnet/error.h"
#include "clnet/optim.h"

namespace clnet::optim {

namespace {

void require_positive(const char* schedule, const char* what, std::int64_t value) {
  if (value < 1) throw Error(fmt::format("{}: {} must be at least 1, not {}", schedule, what, value));
}

/// From `start` to `end` along half a cosine, `share` of the way.
double anneal(double start, double end, double share) {
  return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * share));
}

}  // namespace

Schedule constant(double rate) {
  return [=](std::int64_t) { return rate; };
}

Schedule step_decay(double rate, std::int64_t every, double gamma) {
  require_positive("step_decay", "every", every);
  return [=](std::int64_t step) { return rate * std::pow(gamma, static_cast<double>(step / every)); };
}

Schedule cosine(double rate, std::int64_t total, double final_rate) {
  require_positive("cosine", "total", total);
  return [=](std::int64_t step) {
    return anneal(rate, final_rate, static_cast<double>(std::min(step, total)) / static_cast<double>(total));
  };
}

Schedule one_cycle(double max_rate, std::int64_t total, const OneCycleOptions& options) {
  require_positive("one_cycle", "total", total);
  if (!(options.warmup_share >= 0 && options.warmup_share <= 1))
    throw Error(fmt::format("one_cycle: warmup_share must be from 0 to 1, not {}", options.warmup_share));
  const double first = max_rate / options.div, last = first / options.final_div;
  const double top = options.warmup_share * static_cast<double>(total) - 1, end = static_cast<double>(total) - 1;
  return [=](std::int64_t step) {
    const double at = std::min(static_cast<double>(step), end);
    if (at <= top) return anneal(first, max_rate, top > 0 ? at / top : 1);
    return anneal(max_rate, last, end > top ? std::min(1.0, (at - top) / (end - top)) : 1);
  };
}

Schedule warm_up(std::int64_t steps, Schedule after) {
  require_positive("warm_up", "steps", steps);
  return [steps, after = std::move(after)](std::int64_t step) {
    return step < steps ? after(steps) * static_cast<double>(step + 1) / static_cast<double>(steps) : after(step);
  };
}

}  // namespace clnet::optim

#include "clnet/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "clnet/error.h"
#include "lib/optim/options.h"
#include "lib/optim/state_reader.h"

namespace clnet::optim {

namespace {

void require_count(const char* schedule, const char* what, std::int64_t value) {
  if (value < 1) throw Error(fmt::format("{}: {} must be at least 1, not {}", schedule, what, value));
}
void require_schedule(const char* what, const std::function<double(std::int64_t)>& schedule) {
  if (!schedule) throw Error(fmt::format("{}: an empty schedule", what));
}

/// From `start` to `end` along half a cosine, `share` of the way.
double anneal(double start, double end, double share) {
  return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * share));
}

/// How much of `total` steps is done, 0 to 1.
double share_of(std::int64_t step, std::int64_t total) {
  return static_cast<double>(std::clamp<std::int64_t>(step, 0, total)) / static_cast<double>(total);
}

void require_momenta(const char* schedule, double base, double max) {
  require_share(schedule, "base_momentum", base);
  require_share(schedule, "max_momentum", max);
}

void require_one_cycle(const char* schedule, std::int64_t total, const OneCycleOptions& o) {
  require_count(schedule, "total", total);
  if (!(o.warmup_share >= 0 && o.warmup_share <= 1))
    throw Error(fmt::format("{}: warmup_share must be from 0 to 1, not {}", schedule, o.warmup_share));
}

/// What goes through the phases of one_cycle().
struct Turns {
  double first, top, last;
};
Schedule in_phases(std::int64_t total, const OneCycleOptions& options, const Turns& turns) {
  const double end = static_cast<double>(total) - 1, top = options.warmup_share * static_cast<double>(total) - 1;
  struct Phase {
    double end, from, to;
  };
  std::vector<Phase> phases{{top, turns.first, turns.top}};
  if (options.three_phase) phases.push_back({2 * top, turns.top, turns.first});
  phases.push_back({end, phases.back().to, turns.last});
  return [=, linear = options.linear](std::int64_t step) {
    const double at = std::min(static_cast<double>(step), end);
    double begin = 0;
    auto phase = phases.begin();
    for (; phase + 1 != phases.end() && at > phase->end; ++phase) begin = phase->end;
    const double share = phase->end > begin ? std::min(1.0, (at - begin) / (phase->end - begin)) : 1;
    return linear ? phase->from + (phase->to - phase->from) * share : anneal(phase->from, phase->to, share);
  };
}

/// What cyclic() adds to its base, `height` at the first top.
Schedule cycles(const char* schedule, double height, const CyclicOptions& o) {
  require_count(schedule, "up", o.up);
  if (o.down < 0) throw Error(fmt::format("{}: down must be at least 0, not {}", schedule, o.down));
  require_finite(schedule, "gamma", o.gamma);
  const auto down = o.down == 0 ? o.up : o.down;
  if (down > std::numeric_limits<std::int64_t>::max() - o.up)
    throw Error(fmt::format("{}: a cycle of {} and {} steps is too long", schedule, o.up, down));
  return [=](std::int64_t step) {
    const auto length = o.up + down, cycle = step / length, at = step % length;
    const double share = at <= o.up ? share_of(at, o.up) : share_of(length - at, down);
    double scale = 1;
    if (o.mode == Cycle::triangular2) scale = std::pow(0.5, static_cast<double>(cycle));
    if (o.mode == Cycle::exp_range) scale = std::pow(o.gamma, static_cast<double>(step));
    return height * share * scale;
  };
}

}  // namespace

Schedule constant(double rate) {
  return [=](std::int64_t) { return rate; };
}

Schedule scaled(double rate, std::function<double(std::int64_t step)> factor) {
  require_schedule("scaled", factor);
  return [rate, factor = std::move(factor)](std::int64_t step) { return rate * factor(step); };
}

Schedule step_decay(double rate, std::int64_t every, double gamma) {
  require_count("step_decay", "every", every);
  require_finite("step_decay", "gamma", gamma);
  return [=](std::int64_t step) { return rate * std::pow(gamma, static_cast<double>(step / every)); };
}

Schedule multi_step(double rate, std::vector<std::int64_t> milestones, double gamma) {
  require_finite("multi_step", "gamma", gamma);
  std::sort(milestones.begin(), milestones.end());
  return [rate, gamma, milestones = std::move(milestones)](std::int64_t step) {
    const auto passed = std::upper_bound(milestones.begin(), milestones.end(), step) - milestones.begin();
    return rate * std::pow(gamma, static_cast<double>(passed));
  };
}

Schedule exponential(double rate, double gamma) {
  require_finite("exponential", "gamma", gamma);
  return [=](std::int64_t step) { return rate * std::pow(gamma, static_cast<double>(step)); };
}

Schedule polynomial(double rate, std::int64_t total, double power) {
  require_count("polynomial", "total", total);
  require_positive_or_zero("polynomial", "power", power);
  return [=](std::int64_t step) { return rate * std::pow(1 - share_of(step, total), power); };
}

Schedule linear(double rate, std::int64_t total, double first, double last) {
  require_count("linear", "total", total);
  require_positive_or_zero("linear", "first", first);
  require_positive_or_zero("linear", "last", last);
  return [=](std::int64_t step) { return rate * (first + (last - first) * share_of(step, total)); };
}

Schedule constant_factor(double rate, std::int64_t total, double factor) {
  if (total < 0) throw Error(fmt::format("constant_factor: total must be at least 0, not {}", total));
  require_positive_or_zero("constant_factor", "factor", factor);
  return [=](std::int64_t step) { return step < total ? rate * factor : rate; };
}

Schedule cosine(double rate, std::int64_t total, double final_rate) {
  require_count("cosine", "total", total);
  return [=](std::int64_t step) { return anneal(rate, final_rate, share_of(step, total)); };
}

Schedule cosine_restarts(double rate, std::int64_t first, std::int64_t factor, double final_rate) {
  require_count("cosine_restarts", "first", first);
  require_count("cosine_restarts", "factor", factor);
  return [=](std::int64_t step) {
    std::int64_t at = std::max<std::int64_t>(step, 0), length = first;
    if (factor == 1) {
      at %= length;
    } else {
      while (at >= length) {
        at -= length;
        // A longer one than any step: it never ends.
        length = length > std::numeric_limits<std::int64_t>::max() / factor ? std::numeric_limits<std::int64_t>::max()
                                                                            : length * factor;
      }
    }
    return anneal(rate, final_rate, share_of(at, length));
  };
}

Schedule one_cycle(double max_rate, std::int64_t total, const OneCycleOptions& options) {
  require_one_cycle("one_cycle", total, options);
  require(options.div > 0, "one_cycle", "div", options.div);
  require(options.final_div > 0, "one_cycle", "final_div", options.final_div);
  const double first = max_rate / options.div;
  return in_phases(total, options, {first, max_rate, first / options.final_div});
}

Schedule one_cycle_momentum(std::int64_t total, const OneCycleOptions& options) {
  require_one_cycle("one_cycle_momentum", total, options);
  require_momenta("one_cycle_momentum", options.base_momentum, options.max_momentum);
  return in_phases(total, options, {options.max_momentum, options.base_momentum, options.max_momentum});
}

Schedule cyclic(double base_rate, double max_rate, const CyclicOptions& o) {
  return [base_rate, up = cycles("cyclic", max_rate - base_rate, o)](std::int64_t step) { return base_rate + up(step); };
}

Schedule cyclic_momentum(const CyclicOptions& o) {
  require_momenta("cyclic_momentum", o.base_momentum, o.max_momentum);
  return [max = o.max_momentum, down = cycles("cyclic_momentum", o.max_momentum - o.base_momentum, o)](std::int64_t step) {
    return max - down(step);
  };
}

Schedule warm_up(std::int64_t steps, Schedule after) {
  require_count("warm_up", "steps", steps);
  require_schedule("warm_up", after);
  return [steps, after = std::move(after)](std::int64_t step) {
    return step < steps ? after(steps) * static_cast<double>(step + 1) / static_cast<double>(steps) : after(step);
  };
}

Schedule sequential(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones) {
  if (schedules.empty() || milestones.size() != schedules.size() - 1)
    throw Error(fmt::format("sequential: {} schedules need one milestone less, not {}", schedules.size(), milestones.size()));
  for (const auto& schedule : schedules) require_schedule("sequential", schedule);
  for (std::size_t i = 0; i < milestones.size(); ++i)
    if (milestones[i] <= (i == 0 ? 0 : milestones[i - 1]))
      throw Error(fmt::format("sequential: milestone {} is not after the one before it, or 0", milestones[i]));
  return [schedules = std::move(schedules), milestones = std::move(milestones)](std::int64_t step) {
    const auto which =
        static_cast<std::size_t>(std::upper_bound(milestones.begin(), milestones.end(), step) - milestones.begin());
    return schedules[which](which == 0 ? step : step - milestones[which - 1]);
  };
}

Schedule product(std::vector<Schedule> schedules) {
  if (schedules.empty()) throw Error("product: no schedules");
  for (const auto& schedule : schedules) require_schedule("product", schedule);
  return [schedules = std::move(schedules)](std::int64_t step) {
    double rate = 1;
    for (const auto& schedule : schedules) rate *= schedule(step);
    return rate;
  };
}

Plateau::Plateau(double rate, const PlateauOptions& o)
    : options_(o),
      rate_(rate),
      best_(o.maximize ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  require_positive_or_zero("plateau", "the rate", rate);
  require(o.factor >= 0 && o.factor < 1, "plateau", "factor", o.factor);
  require(o.patience >= 0, "plateau", "patience", static_cast<double>(o.patience));
  require(o.cooldown >= 0, "plateau", "cooldown", static_cast<double>(o.cooldown));
  require_positive_or_zero("plateau", "threshold", o.threshold);
  require_positive_or_zero("plateau", "min_rate", o.min_rate);
  require_positive_or_zero("plateau", "eps", o.eps);
}

double Plateau::step(double metric) {
  const double sign = options_.maximize ? 1 : -1;
  // An infinite best is beaten by any number, and its share would be none.
  const double margin = options_.relative && std::isfinite(best_) ? best_ * options_.threshold : options_.threshold;
  const double bar = std::isfinite(best_) ? best_ + sign * margin : best_;
  if (options_.maximize ? metric > bar : metric < bar) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_ = 0;
  }
  if (bad_ > options_.patience) {
    const double lower = std::max(rate_ * options_.factor, options_.min_rate);
    if (rate_ - lower > options_.eps) rate_ = lower;
    cooling_ = options_.cooldown;
    bad_ = 0;
  }
  return rate_;
}

io::StateDict Plateau::state_dict() const {
  const auto count = [](std::int64_t value) { return Tensor::scalar(static_cast<double>(value), Dtype::i64); };
  return {{"rate", state_number(rate_)}, {"best", state_number(best_)}, {"bad", count(bad_)}, {"cooldown", count(cooling_)}};
}

void Plateau::load_state_dict(const io::StateDict& state) {
  StateReader reader(state);
  const double rate = reader.number("rate"), best = reader.number("best");
  const auto bad = reader.count("bad"), cooling = reader.count("cooldown");
  if (!(rate >= 0 && std::isfinite(rate))) reader.fault(fmt::format("rate is {}", rate));
  reader.require_fit("plateau");
  rate_ = rate, best_ = best, bad_ = bad, cooling_ = cooling;
}

}  // namespace clnet::optim

// Schedules of the learning rate: PyTorch's options as attributes, or as words of the case's detail ("step 3 gamma .5").
#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "tests/torch/cases.h"
#include "tests/torch/formula.h"

namespace clnet::torch {

namespace {

/// The options of a schedule. Each is asked for by PyTorch's name and others that people write; numbers that stand behind no such
/// word are the options that are left, in the order in which they are asked for.
class Options {
 public:
  explicit Options(const Given& in) : in_(in) {
    const auto detail = in.text({"detail", "details"}, "");
    static const std::regex token(R"(([A-Za-z_][A-Za-z_0-9]*)|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)(?:/([0-9]+))?)");
    std::string word;
    for (std::sregex_iterator at(detail.begin(), detail.end(), token), end; at != end; ++at) {
      if ((*at)[1].matched) {
        word = plain_name((*at)[1].str());
        words_.insert(word);
        continue;
      }
      // "0.2->1.0 in 5"
      const auto before = at->prefix().str(), after = at->suffix().str().substr(0, 2);
      if (after == "->") word = "from";
      if (before.ends_with("->")) word = "to";
      const double number = std::stod((*at)[2].str());
      numbers_.push_back({word, (*at)[3].matched ? number / std::stod((*at)[3].str()) : number});
    }
  }

  bool says(const std::string& word) const { return words_.contains(word); }

  /// The numbers of the options named, in their order; NaN for one that is not given.
  std::vector<double> of(const std::vector<Names>& options) {
    std::vector<double> result;
    for (const auto& names : options) result.push_back(named(names));
    for (auto& value : result)
      if (std::isnan(value)) value = take([](const Number&) { return true; });
    for (const auto& number : numbers_)
      if (!number.taken) throw Failed(fmt::format("unclear what {} is in the detail", number.value));
    return result;
  }

  /// A list: as an attribute, behind one of the words, or else all numbers that are behind no word and `fits`.
  std::vector<double> list(const Names& names, const std::function<bool(double)>& fits) {
    if (const auto given = in_.numbers(names)) return *given;
    std::vector<double> result;
    for (const bool behind_word : {true, false}) {
      for (auto& number : numbers_)
        if (!number.taken && (behind_word ? is(number, names) : number.word.empty() && fits(number.value))) {
          number.taken = true;
          result.push_back(number.value);
        }
      if (!result.empty()) break;
    }
    return result;
  }

 private:
  struct Number {
    std::string word;
    double value = 0;
    bool taken = false;
  };

  static bool is(const Number& number, const Names& names) {
    for (const auto& name : names.all)
      if (plain_name(name) == number.word) return true;
    return false;
  }
  double take(const std::function<bool(const Number&)>& wanted) {
    for (auto& number : numbers_)
      if (!number.taken && wanted(number)) {
        number.taken = true;
        return number.value;
      }
    return NAN;
  }
  double named(const Names& names) {
    if (in_.find(names) != nullptr) return in_.number(names, NAN);
    return take([&](const Number& number) { return is(number, names); });
  }

  const Given& in_;
  std::vector<Number> numbers_;
  std::set<std::string> words_;
};

double or_else(double value, double otherwise) { return std::isnan(value) ? otherwise : value; }
std::int64_t count(double value, const char* name) {
  if (std::isnan(value)) throw Failed(std::string("there is no ") + name);
  return static_cast<std::int64_t>(std::llround(value));
}

const Names gamma_name{"gamma", "factor", "decay", "times", "by", "x"};
const Names total_name{"total_iters", "T_max", "total_steps", "total", "iters",  "in",  "over",
                       "for",         "steps", "epochs",      "T",     "period", "max", "n"};
const Names least_name{"eta_min", "min", "min_lr", "to", "final", "final_rate", "end", "eta"};
const Names start_name{"from", "start", "base"};

optim::Schedule cosine(double base, Options& options) {
  const auto o = options.of({total_name, least_name, start_name});
  const auto total = count(o[0], "T_max");
  // PyTorch's rises again behind T_max; the library's stays.
  return [total, falling = optim::cosine(or_else(o[2], base), total, or_else(o[1], 0))](std::int64_t epoch) {
    const auto at = epoch % (2 * total);
    return falling(at <= total ? at : 2 * total - at);
  };
}

/// A schedule of the learning rate, and the momentum's where there is one.
struct Schedules {
  optim::Schedule rate, momentum = nullptr;
};

Schedules one_cycle(const Given& in, double base, Options& options) {
  const auto strategy = in.text("anneal_strategy", options.says("linear") ? "linear" : "cos");
  if (strategy != "cos" && strategy != "linear") throw Failed("unknown anneal_strategy " + strategy);
  in.restated({"cycle_momentum"});
  const auto epochs = in.integer("epochs", 0) * in.integer("steps_per_epoch", 0);
  const auto o = options.of({{"max_lr", "max", "peak"},
                             {"total_steps", "total", "steps", "in", "over", "T"},
                             {"pct_start", "pct", "warmup", "share", "start"},
                             {"div_factor", "div", "initial_div"},
                             {"final_div_factor", "final_div", "final"}});
  const auto total = epochs > 0 ? epochs : count(o[1], "total_steps");
  const optim::OneCycleOptions described{.warmup_share = or_else(o[2], 0.3),
                                         .div = or_else(o[3], 25),
                                         .final_div = or_else(o[4], 1e4),
                                         .linear = strategy == "linear",
                                         .three_phase = in.flag("three_phase"),
                                         .base_momentum = in.number({"base_momentum"}, 0.85),
                                         .max_momentum = in.number({"max_momentum"}, 0.95)};
  return {optim::one_cycle(or_else(o[0], base), total, described), optim::one_cycle_momentum(total, described)};
}

Schedules cyclic(const Given& in, double base, Options& options) {
  in.restated({"cycle_momentum"});
  const auto o = options.of({{"max_lr", "max", "to"},
                             {"step_size_up", "up", "step_up", "step_size"},
                             {"step_size_down", "down", "step_down"},
                             {"gamma"},
                             {"min", "from", "base"}});
  auto mode = in.text("mode", "triangular");
  for (const char* said : {"triangular2", "exp_range"})
    if (options.says(plain_name(said))) mode = said;
  if (mode != "triangular" && mode != "triangular2" && mode != "exp_range") throw Failed("unknown mode " + mode);
  if (std::isnan(o[0])) throw Failed("there is no max_lr");
  const optim::CyclicOptions described{.up = count(or_else(o[1], 2000), "step_size_up"),
                                       .down = count(or_else(o[2], 0), "step_size_down"),
                                       .mode = mode == "triangular2" ? optim::Cycle::triangular2
                                               : mode == "exp_range" ? optim::Cycle::exp_range
                                                                     : optim::Cycle::triangular,
                                       .gamma = or_else(o[3], 1),
                                       .base_momentum = in.number({"base_momentum"}, 0.8),
                                       .max_momentum = in.number({"max_momentum"}, 0.9)};
  return {optim::cyclic(or_else(o[4], base), o[0], described), optim::cyclic_momentum(described)};
}

/// The rate of each epoch is that before its metric is known.
optim::Schedule plateau(const Given& in, double base, Options& options) {
  auto metrics = options.list({"metrics", "metric", "losses", "loss", "values"}, [](double) { return false; });
  if (const auto given = in[{"metrics", "metric", "losses", "loss", "values", "x"}]; given.defined())
    for (const float value : cast(given, Dtype::f32).to_vector<float>()) metrics.push_back(value);
  if (metrics.empty()) throw Failed("there are no metrics");
  const auto o = options.of({{"factor", "gamma"}, {"patience"}, {"threshold"}, {"cooldown"}, {"min_lr", "min"}, {"eps"}});
  const optim::PlateauOptions described{.maximize = in.text("mode", options.says("max") ? "max" : "min") == "max",
                                        .factor = or_else(o[0], 0.1),
                                        .patience = count(or_else(o[1], 10), "patience"),
                                        .threshold = or_else(o[2], 1e-4),
                                        .relative = in.text("threshold_mode", options.says("abs") ? "abs" : "rel") == "rel",
                                        .cooldown = count(or_else(o[3], 0), "cooldown"),
                                        .min_rate = or_else(o[4], 0),
                                        .eps = or_else(o[5], 1e-8)};
  return [=](std::int64_t epoch) {
    optim::Plateau rate(base, described);
    for (std::int64_t i = 0; i < epoch; ++i) rate.step(metrics.at(static_cast<std::size_t>(i)));
    return rate.rate();
  };
}

/// Factors that are written as formulas, of each epoch or of each against the one before.
optim::Schedule lambda(const Given& in, double base, bool multiplied) {
  const auto factor = formula(in.text({"lr_lambda", "lambda", "formula", "detail"}, ""));
  return optim::scaled(base, [=](std::int64_t epoch) {
    if (!multiplied) return factor(static_cast<double>(epoch));
    double product = 1;
    for (std::int64_t i = 1; i <= epoch; ++i) product *= factor(static_cast<double>(i));
    return product;
  });
}

optim::Schedule multi_step(double base, Options& options) {
  std::vector<std::int64_t> milestones;
  const auto whole = [](double value) { return value >= 1 && value == std::floor(value); };
  for (const double at : options.list({"milestones", "at", "steps", "epochs"}, whole)) milestones.push_back(std::llround(at));
  return optim::multi_step(base, milestones, or_else(options.of({gamma_name})[0], 0.1));
}

Schedules schedule(const Given& in, const std::string& kind);

/// Schedules one after the other, or all at once: as a list of their attributes, or in the detail with "then" between them,
/// "linear .1->1 in 4 then exponential gamma .9". Milestones are an attribute, or what the earlier ones' lengths add up to.
Schedules chain(const Given& in, double base, bool at_once) {
  std::vector<optim::Schedule> parts;
  std::vector<std::int64_t> milestones = in.integers("milestones").value_or(std::vector<std::int64_t>{});
  const bool lengths = milestones.empty() && !at_once;
  const auto add = [&](json attributes, const std::string& kind) {
    attributes["base_lr"] = base;
    const Given part(in.op, attributes, {}, in.outputs);
    parts.push_back(schedule(part, plain_name(kind)).rate);
  };
  if (const auto* listed = in.find({"schedulers", "schedules"})) {
    for (const auto& each : *listed) add(each, each.value("kind", each.value("name", "")));
  } else {
    static const std::regex between("[,;]? +(?:then|and|times) +");
    const auto detail = in.text({"detail", "details"}, "");
    if (detail.empty()) throw Failed("there are no schedules to chain");
    std::sregex_token_iterator at(detail.begin(), detail.end(), between, -1);
    for (const std::sregex_token_iterator end; at != end; ++at) {
      const auto text = at->str();
      const auto space = std::min(text.find(' '), text.size());
      add({{"detail", text.substr(space)}}, text.substr(0, space));
      const auto total = text.find_last_of(' ');
      if (!lengths || std::next(at) == end || total == std::string::npos) continue;
      milestones.push_back(std::strtoll(text.c_str() + total, nullptr, 10) + (milestones.empty() ? 0 : milestones.back()));
    }
  }
  if (parts.size() < 2) throw Failed("there are no schedules to chain");
  if (!at_once) return {optim::sequential(parts, milestones)};
  // Each begins with the base rate.
  return {optim::scaled(base, [=](std::int64_t epoch) {
    double factor = 1;
    for (const auto& part : parts) factor *= part(epoch) / base;
    return factor;
  })};
}

/// The kinds, by what their names contain: PyTorch's (CosineAnnealingWarmRestarts) and shorter ones (cosine_restarts).
Schedules schedule(const Given& in, const std::string& kind) {
  const double base = in.number({"base_lr", "lr", "initial_lr"}, 0.1);
  const auto is = [&](const char* word) { return kind.find(word) != std::string::npos; };
  const bool then = in.text({"detail", "details"}, "").find(" then ") != std::string::npos;
  if (is("sequen") || is("chain") || then) return chain(in, base, is("chain") && !then);
  if (is("lambda") || is("multiplicative")) return {lambda(in, base, is("multiplicative"))};
  Options options(in);
  if (is("plateau")) return {plateau(in, base, options)};
  if (is("onecycle") || is("1cycle")) return one_cycle(in, base, options);
  if (is("triangular")) return cyclic(in.with(in.op, {{"mode", kind}}), base, options);
  if (is("cyclic")) return cyclic(in, base, options);
  if (is("restart") || is("sgdr")) {
    const auto o = options.of({{"T_0", "first", "T", "period", "every"}, {"T_mult", "mult", "factor"}, least_name});
    return {optim::cosine_restarts(base, count(o[0], "T_0"), count(or_else(o[1], 1), "T_mult"), or_else(o[2], 0))};
  }
  if (is("cos")) return {cosine(base, options)};
  if (is("multistep")) return {multi_step(base, options)};
  if (is("step")) {
    const auto o = options.of({{"step_size", "step", "every", "steps"}, gamma_name});
    return {optim::step_decay(base, count(o[0], "step_size"), or_else(o[1], 0.1))};
  }
  if (is("exp")) return {optim::exponential(base, or_else(options.of({gamma_name})[0], 0.1))};
  if (is("linear")) {
    const auto o = options.of({{"start_factor", "start", "from"}, {"end_factor", "end", "to"}, total_name});
    return {optim::linear(base, count(or_else(o[2], 5), "total_iters"), or_else(o[0], 1.0 / 3), or_else(o[1], 1))};
  }
  if (is("const")) {
    const auto o = options.of({{"factor", "times", "gamma", "x"}, total_name});
    return {optim::constant_factor(base, count(or_else(o[1], 5), "total_iters"), or_else(o[0], 1.0 / 3))};
  }
  if (is("poly")) {
    const auto o = options.of({total_name, {"power", "p"}});
    return {optim::polynomial(base, count(or_else(o[0], 5), "total_iters"), or_else(o[1], 1))};
  }
  throw Failed("unknown schedule " + in.text({"kind", "schedule", "scheduler"}, in.op));
}

Results schedule_case(const Given& in, const std::string& kind) {
  const auto [rate, momentum] = schedule(in, plain_name(kind));
  in.restated({"epochs", "steps"});
  Results results;
  const auto add = [&](const char* name, const optim::Schedule& scheduled) {
    const auto wanted = in.outputs.find(name);
    if (wanted == in.outputs.end()) return;
    if (!scheduled) throw Failed("the schedule has no momentum");
    std::vector<float> values;
    for (std::int64_t epoch = 0; epoch < wanted->second.numel(); ++epoch) values.push_back(static_cast<float>(scheduled(epoch)));
    results.outputs[name] = Tensor::from(values, wanted->second.shape());
  };
  add(in.outputs.contains("lr") ? "lr" : "y", rate);
  if (results.outputs.empty()) throw Failed("there are no rates to compare with");
  add("momentum", momentum);
  return results;
}

}  // namespace

void add_schedules(Operations& operations) {
  operations["lr_schedule"] = operations["lr_scheduler"] = operations["schedule"] = [](const Given& in) {
    return schedule_case(in, in.text({"kind", "schedule", "scheduler", "algo"}, ""));
  };
  for (const char* name :
       {"StepLR", "MultiStepLR", "ExponentialLR", "LinearLR", "ConstantLR", "PolynomialLR", "LambdaLR", "MultiplicativeLR",
        "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "OneCycleLR", "CyclicLR", "ReduceLROnPlateau"})
    operations[name] = [name](const Given& in) { return schedule_case(in, name); };
}

}  // namespace clnet::torch

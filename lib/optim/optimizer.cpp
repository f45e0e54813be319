#include "clnet/optim/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "clnet/autograd.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/node.h"
#include "lib/graph/slot.h"
#include "lib/nn/reached.h"
#include "lib/optim/options.h"
#include "lib/optim/state_reader.h"

namespace clnet::optim {

Parameters::Parameters(const nn::Module& module) : list_(module.parameters()) {}
Parameters::Parameters(nn::NamedParameters parameters) : list_(std::move(parameters)) {}
Parameters::Parameters(const nn::Module& module, const std::function<bool(const std::string& name)>& wanted) {
  for (auto& named : module.parameters())
    if (wanted(named.first)) list_.push_back(std::move(named));
}

namespace {

/// What the sums of accumulate() are called in state(); no rule may call its state so.
constexpr std::string_view sum_name = "grad";

void require_result(const Rule& rule, const std::string& parameter, const Rule::Item& item, const Rule::Result& result) {
  if (result.states.size() != item.states.size())
    throw Error(fmt::format("{}: update() gave {} states of {}, which has {}", rule.name(), result.states.size(), parameter,
                            item.states.size()));
  const auto require_same = [&](const Tensor& got, const Tensor& wanted, std::string_view what) {
    if (!got.defined()) throw Error(fmt::format("{}: update() gave {} of {} undefined", rule.name(), what, parameter));
    const auto text = [&] {
      return fmt::format("{}: update() gave {} of {} as {}, not {}", rule.name(), what, parameter, to_string(got.spec()),
                         to_string(wanted.spec()));
    };
    if (got.shape() != wanted.shape()) throw ShapeError(text());
    if (got.dtype() != wanted.dtype()) throw DtypeError(text());
  };
  require_same(result.parameter, item.parameter, "the value");
  for (std::size_t i = 0; i < item.states.size(); ++i) require_same(result.states[i], item.states[i], "a state");
}

}  // namespace

struct Optimizer::Impl {
  struct Slot {
    std::string name;
    nn::Parameter parameter;
    std::vector<std::string> state_names;
    std::vector<nn::Parameter> state;
    std::optional<nn::Parameter> sum;  ///< of accumulate()
    std::size_t group;
  };
  struct Group {
    std::shared_ptr<const Rule> rule;
    double rate, proportion;  ///< to the first group's rate
  };

  std::string name;
  Clipping clipping;
  std::int64_t steps = 0;
  std::vector<Group> groups;
  std::vector<Slot> slots;  ///< of all groups, in their order

  void add(const Parameters& parameters, std::shared_ptr<const Rule> rule, double rate) {
    std::vector<Slot> more;
    for (const auto& [full_name, parameter] : parameters.list()) {
      for (const auto* list : {&slots, &more})
        for (const auto& slot : *list) {
          if (slot.parameter.same(parameter))
            throw Error(fmt::format("{}: {} is optimized already{}", rule->name(), full_name,
                                    slot.name == full_name ? "" : ", as " + slot.name));
          if (slot.name == full_name) throw Error(fmt::format("{}: two parameters are called {}", rule->name(), full_name));
        }
      more.push_back(make_slot(*rule, full_name, parameter));
    }
    const double first = groups.empty() ? rate : groups[0].rate;
    groups.push_back({std::move(rule), rate, first > 0 ? rate / first : 1});
    slots.insert(slots.end(), more.begin(), more.end());
  }

  Slot make_slot(const Rule& rule, const std::string& full_name, const nn::Parameter& parameter) const {
    const auto& spec = parameter.value().spec();
    if (!is_floating(spec.dtype))
      throw DtypeError(fmt::format("{}: {} is {}, which has no gradient", rule.name(), full_name, to_string(spec)));
    Slot slot{full_name, parameter, {}, {}, std::nullopt, groups.size()};
    for (const auto& [what, initial, shape] : rule.states(spec.shape)) {
      if (what.empty() || what.find('.') != std::string::npos || what == sum_name ||
          std::find(slot.state_names.begin(), slot.state_names.end(), what) != slot.state_names.end())
        throw Error(fmt::format("{}: '{}' is no name of a state: it is empty, has a dot in it, is '{}' or there twice",
                                rule.name(), what, sum_name));
      slot.state_names.push_back(what);
      const auto& its_shape = shape.value_or(spec.shape);
      const std::vector<float> values(static_cast<std::size_t>(its_shape.numel()), static_cast<float>(initial));
      slot.state.emplace_back(Tensor::from(values, its_shape));
    }
    return slot;
  }

  /// The gradient of each parameter, taken at the value that the loss was built with; undefined where the loss does not reach it
  /// and where it is frozen.
  std::vector<Tensor> gradients_of(const Tensor& loss) const {
    if (!loss.defined()) throw Error(fmt::format("{}: the loss is undefined", name));
    nn::NamedParameters list;
    for (const auto& slot : slots) list.emplace_back(slot.name, slot.parameter);
    const auto leaves = nn::reached_leaves(name, loss, list);
    std::vector<Tensor> reached;
    for (const auto& leaf : leaves)
      if (leaf.defined()) reached.push_back(leaf);
    auto given = gradients(loss, reached);
    std::vector<Tensor> result(slots.size());
    for (std::size_t i = 0, next = 0; i < slots.size(); ++i)
      if (leaves[i].defined()) result[i] = std::move(given[next++]);
    return result;
  }

  /// With what accumulate() has summed.
  std::vector<Tensor> with_sums(std::vector<Tensor> all) const {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!slots[i].sum || slots[i].parameter.frozen()) continue;
      all[i] = all[i].defined() ? slots[i].sum->value() + cast(all[i], Dtype::f32) : slots[i].sum->value();
    }
    return all;
  }

  std::vector<Tensor> clipped(std::vector<Tensor> gradients) const {
    if (clipping.value > 0) gradients = clip_by_value(gradients, clipping.value);
    if (clipping.norm > 0) gradients = clip_by_norm(gradients, clipping.norm);
    return gradients;
  }

  /// The new values of everything that a step changes, and where they go.
  using Update = std::vector<std::pair<nn::Parameter, Tensor>>;

  /// Parameters with an undefined gradient stay as they are.
  Update update(const std::vector<Tensor>& all) const {
    std::vector<const Slot*> moved;
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!all[i].defined()) continue;
      moved.push_back(&slots[i]);
      gradients.push_back(all[i]);
    }
    gradients = clipped(std::move(gradients));
    Update result;
    for (std::size_t group = 0, next = 0; group < groups.size(); ++group) {
      std::vector<Rule::Item> items;
      const auto first = next;
      for (; next < moved.size() && moved[next]->group == group; ++next)
        items.push_back({moved[next]->parameter, gradients[next], {moved[next]->state.begin(), moved[next]->state.end()}});
      if (items.empty()) continue;
      const auto& [rule, rate, proportion] = groups[group];
      const auto results = rule->update_all(items, {steps + 1, rate});
      if (results.size() != items.size())
        throw Error(
            fmt::format("{}: update_all() gave {} results for {} parameters", rule->name(), results.size(), items.size()));
      for (std::size_t i = 0; i < items.size(); ++i) {
        const auto& slot = *moved[first + i];
        require_result(*rule, slot.name, items[i], results[i]);
        result.emplace_back(slot.parameter, results[i].parameter);
        for (std::size_t s = 0; s < slot.state.size(); ++s) result.emplace_back(slot.state[s], results[i].states[s]);
      }
    }
    return result;
  }

  /// Computes the update along with `more`, and only then changes anything.
  void run(const Update& update, bool clear, std::vector<Tensor> more = {}) {
    for (const auto& [target, value] : update) more.push_back(value);
    eval(more);
    // assign() would evaluate once more.
    for (const auto& [target, value] : update) nn::Parameter(target).set(value);
    ++steps;
    if (clear)
      for (auto& slot : slots) slot.sum.reset();
  }

  void require_more(std::span<const Tensor> more) const {
    for (std::size_t i = 0; i < more.size(); ++i)
      if (!more[i].defined()) throw Error(fmt::format("{}: result {} to be computed along is undefined", name, i));
  }
};

Optimizer::Optimizer(const Parameters& parameters, std::shared_ptr<const Rule> rule, double learning_rate,
                     const Clipping& clipping)
    : impl_(std::make_shared<Impl>()) {
  if (!rule) throw Error("optimizer: made without a rule");
  impl_->name = rule->name();
  require_positive_or_zero(impl_->name, "learning_rate", learning_rate);
  require(clipping.norm >= 0, impl_->name, "clip_norm", clipping.norm);
  require(clipping.value >= 0, impl_->name, "clip_value", clipping.value);
  impl_->clipping = clipping;
  impl_->add(parameters, std::move(rule), learning_rate);
}

void Optimizer::add_group(const Parameters& parameters, std::shared_ptr<const Rule> rule, double learning_rate) {
  require_made("add_group");
  if (!rule) throw Error("optimizer: a group without a rule");
  require_positive_or_zero(rule->name(), "learning_rate", learning_rate);
  impl_->add(parameters, std::move(rule), learning_rate);
}

void Optimizer::require_same_clipping(const Clipping& clipping) const {
  require_made("add_group");
  if (clipping != Clipping{} && clipping != impl_->clipping)
    throw Error(fmt::format("{}: a group cannot clip by norm {} and value {}: clipping is of all groups together", impl_->name,
                            clipping.norm, clipping.value));
}

void Optimizer::require_made(std::string_view call) const {
  if (!impl_) throw Error(fmt::format("optimizer: {}() on an optimizer that was never made", call));
}

Tensor Optimizer::step(const Tensor& loss, std::span<const Tensor> more) {
  require_made("step");
  impl_->require_more(more);
  std::vector<Tensor> wanted(more.begin(), more.end());
  const auto update = impl_->update(impl_->with_sums(impl_->gradients_of(loss)));
  wanted.push_back(loss);
  impl_->run(update, true, std::move(wanted));
  return loss.detach();
}
Tensor Optimizer::step(const Tensor& loss, std::initializer_list<Tensor> more) {
  return step(loss, std::span(more.begin(), more.size()));
}

Tensor Optimizer::accumulate(const Tensor& loss, std::span<const Tensor> more) {
  require_made("accumulate");
  impl_->require_more(more);
  const auto gradients = impl_->gradients_of(loss);
  std::vector<Tensor> wanted(more.begin(), more.end());
  wanted.push_back(loss);
  std::vector<std::pair<Impl::Slot*, Tensor>> sums;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    auto& slot = impl_->slots[i];
    const Tensor gradient = cast(gradients[i], Dtype::f32);
    sums.emplace_back(&slot, slot.sum ? slot.sum->value() + gradient : gradient);
    wanted.push_back(sums.back().second);
  }
  eval(wanted);
  for (auto& [slot, sum] : sums) {
    if (slot->sum)
      slot->sum->set(sum);
    else
      slot->sum.emplace(sum);
  }
  return loss.detach();
}
Tensor Optimizer::accumulate(const Tensor& loss, std::initializer_list<Tensor> more) {
  return accumulate(loss, std::span(more.begin(), more.size()));
}

void Optimizer::step() {
  require_made("step");
  const auto gradients = impl_->with_sums(std::vector<Tensor>(impl_->slots.size()));
  if (std::none_of(gradients.begin(), gradients.end(), [](const Tensor& sum) { return sum.defined(); }))
    throw Error(fmt::format("{}: step() without a loss, and nothing was accumulated", impl_->name));
  impl_->run(impl_->update(gradients), true);
}

void Optimizer::apply(const std::vector<Tensor>& gradients) {
  require_made("apply");
  const auto& slots = impl_->slots;
  if (gradients.size() != slots.size())
    throw Error(fmt::format("{}: {} gradients for {} parameters", impl_->name, gradients.size(), slots.size()));
  auto moving = gradients;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].parameter.frozen()) {
      moving[i] = {};
      continue;
    }
    if (!gradients[i].defined()) throw Error(fmt::format("{}: the gradient of {} is undefined", impl_->name, slots[i].name));
    const auto &gradient = gradients[i].spec(), &parameter = slots[i].parameter.value().spec();
    const auto text = [&] {
      return fmt::format("{}: {} is {}, its gradient {}", impl_->name, slots[i].name, to_string(parameter), to_string(gradient));
    };
    if (gradient.shape != parameter.shape) throw ShapeError(text());
    if (!is_floating(gradient.dtype)) throw DtypeError(text());
  }
  impl_->run(impl_->update(moving), false);
}

double Optimizer::learning_rate(std::size_t group) const {
  require_made("learning_rate");
  if (group >= impl_->groups.size())
    throw Error(fmt::format("{}: there is no group {}, only {}", impl_->name, group, impl_->groups.size()));
  return impl_->groups[group].rate;
}

void Optimizer::set_learning_rate(double rate) {
  require_made("set_learning_rate");
  require_positive_or_zero("optimizer", "the learning rate", rate);
  for (auto& group : impl_->groups) group.rate = rate * group.proportion;
}

void Optimizer::set_group_learning_rate(std::size_t group, double rate) {
  const auto first = learning_rate(0);
  (void)learning_rate(group);
  require_positive_or_zero("optimizer", "the learning rate", rate);
  impl_->groups[group].rate = rate;
  if (group > 0) {
    impl_->groups[group].proportion = first > 0 ? rate / first : 1;
    return;
  }
  for (auto& other : impl_->groups) other.proportion = rate > 0 ? other.rate / rate : 1;
}

std::size_t Optimizer::groups() const {
  require_made("groups");
  return impl_->groups.size();
}
std::int64_t Optimizer::steps() const {
  require_made("steps");
  return impl_->steps;
}

bool Optimizer::made_for(const nn::Module& module) const {
  if (!impl_) return false;
  const auto theirs = module.parameters();
  std::unordered_map<std::string, const nn::Parameter*> by_name;
  for (const auto& [name, parameter] : theirs) by_name.emplace(name, &parameter);
  return std::all_of(impl_->slots.begin(), impl_->slots.end(),
                     [&](const Impl::Slot& ours) {
                       const auto found = by_name.find(ours.name);
                       return found != by_name.end() && found->second->same(ours.parameter);
                     }) &&
         (!impl_->slots.empty() || theirs.empty());
}

io::StateDict Optimizer::state() const {
  require_made("state");
  io::StateDict result{{"step", Tensor::scalar(static_cast<double>(impl_->steps), Dtype::i64)}};
  for (const auto& slot : impl_->slots) {
    for (std::size_t i = 0; i < slot.state.size(); ++i)
      result.emplace_back(slot.name + '.' + slot.state_names[i], slot.state[i].value());
    if (slot.sum) result.emplace_back(fmt::format("{}.{}", slot.name, sum_name), slot.sum->value());
  }
  return result;
}

void Optimizer::load_state(const io::StateDict& state) {
  require_made("load_state");
  StateReader reader(state);
  const auto steps = reader.count("step");
  std::vector<std::pair<nn::Parameter, Tensor>> changes;
  std::vector<Tensor> sums;
  for (const auto& slot : impl_->slots) {
    for (std::size_t i = 0; i < slot.state.size(); ++i)
      changes.emplace_back(slot.state[i], reader.take(slot.name + '.' + slot.state_names[i], slot.state[i].value().spec()));
    const auto sum = fmt::format("{}.{}", slot.name, sum_name);
    sums.push_back(reader.has(sum) ? reader.take(sum, {slot.parameter.value().shape(), Dtype::f32}) : Tensor{});
  }
  reader.require_fit("optimizer");
  impl_->steps = steps;
  for (auto& [parameter, tensor] : changes) parameter.set(tensor);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    impl_->slots[i].sum.reset();
    if (sums[i].defined()) impl_->slots[i].sum.emplace(sums[i]);
  }
}

}  // namespace clnet::optim

// What an Optimizer holds, and how it steps. Its public functions are in optimizer.cpp and optimizer_state.cpp.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/autocast.h"
#include "clnet/autograd.h"
#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "clnet/optim/optimizer.h"
#include "lib/exec/evaluate.h"
#include "lib/exec/upload.h"
#include "lib/graph/node.h"
#include "lib/graph/require.h"
#include "lib/nn/parameter.h"
#include "lib/nn/reached.h"
#include "lib/optim/options.h"
#include "lib/optim/rules.h"
#include "lib/optim/scaling.h"
#include "lib/optim/sharding.h"

namespace clnet::optim {

/// The names in state_dict() of accumulate()'s sums and of a parameter's own step count; no rule may use them for a state.
inline constexpr std::string_view sum_name = "grad", step_name = "step";

/// Throws where a rule gives values that do not fit.
void require_result(const Rule& rule, const std::string& parameter, const Rule::Item& item, const Rule::Result& result);

struct Optimizer::Impl {
  struct Member {
    std::string name;
    nn::Parameter parameter;
    std::vector<std::string> state_names;
    std::vector<Spec> state_specs;
    std::vector<nn::Parameter> state;  ///< none where another rank keeps it
    std::optional<nn::Parameter> sum;  ///< of accumulate()
    std::size_t group;
    std::int64_t missed;             ///< steps that did not move it, also before it was added
    Tensor spared;                   ///< with a loss scale: the skipped ones among these (i64 scalar); undefined: none
    int owner = Sharding::everyone;  ///< the rank that keeps the state
  };
  struct Group {
    std::shared_ptr<const Rule> rule;
    double rate, initial;            ///< the groups' rates keep the proportions of the initial ones
    std::optional<double> momentum;  ///< the momentum that was set, if any
  };

  std::string name;
  Clipping clipping;
  std::int64_t steps = 0;
  std::vector<Group> groups;
  std::vector<Member> members;  ///< of all groups, in order
  std::optional<Scaling> scaling;
  std::optional<Sharding> sharding;
  GradientFunction gradient_function;
  bool is_stepping = false;

  void require_idle(std::string_view call) const {
    if (is_stepping) throw Error(fmt::format("{}: {}() while it makes a step", name, call));
  }

  /// A step under way. A failed one leaves the loss scale at home.
  class Stepping {
   public:
    Stepping(Impl& impl, std::string_view call) : impl_(impl) {
      nn::require_may_set();  // before an evaluation overwrites old states
      impl.require_idle(call);
      impl.is_stepping = true;
      if (impl.scaling) home_ = impl.scaling->home();
    }
    ~Stepping() {
      impl_.is_stepping = false;
      if (!done_ && impl_.scaling) impl_.scaling->set_home(std::move(home_));
    }
    Stepping(const Stepping&) = delete;
    Stepping& operator=(const Stepping&) = delete;
    void done() { done_ = true; }

   private:
    Impl& impl_;
    std::shared_ptr<ocl::Context> home_;
    bool done_ = false;
  };

  void add(const Parameters& parameters, std::shared_ptr<const Rule> rule, double rate) {
    std::vector<Member> more;
    for (const auto& [full_name, parameter] : parameters.list()) {
      for (const auto* list : {&members, &more})
        for (const auto& member : *list) {
          if (member.parameter.same(parameter))
            throw Error(fmt::format("{}: {} is optimized already{}", rule->name(), full_name,
                                    member.name == full_name ? "" : ", as " + member.name));
          if (member.name == full_name)
            throw Error(
                fmt::format("{}: two parameters are called {}; Parameters(model, wanted) takes parts of one model by name",
                            rule->name(), full_name));
        }
      more.push_back(make_member(*rule, full_name, parameter));
    }
    if (scaling && steps > 0) {
      const auto spared = (Tensor::scalar(static_cast<double>(steps), Dtype::i64) - scaling->made()).detach();
      for (auto& member : more) member.spared = spared;
    }
    groups.push_back({std::move(rule), rate, rate, std::nullopt});
    for (const auto& member : more) own_slot_of(member.parameter)->held = true;
    const auto before = members.size();
    members.insert(members.end(), more.begin(), more.end());
    if (sharding) deal_from(before);
  }

  /// Gives the states of members from `first` on to ranks, and lets go of other ranks'.
  void deal_from(std::size_t first) {
    std::vector<std::int64_t> bytes;
    for (std::size_t i = first; i < members.size(); ++i) {
      bytes.push_back(0);
      for (const auto& spec : members[i].state_specs) bytes.back() += spec.bytes();
    }
    const auto owners = sharding->deal(bytes);
    for (std::size_t i = first; i < members.size(); ++i) {
      members[i].owner = owners[i - first];
      if (!keeps(members[i])) members[i].state.clear();
    }
  }
  bool keeps(const Member& member) const { return !sharding || sharding->keeps(member.owner); }

  Member make_member(const Rule& rule, const std::string& full_name, const nn::Parameter& parameter) const {
    const auto spec = parameter.value().spec();
    if (!is_floating(spec.dtype))
      throw DtypeError(fmt::format("{}: {} is {}, which has no gradient", rule.name(), full_name, to_string(spec)));
    refuse_f64(rule.name(), full_name, spec);
    Member member{full_name, parameter, {}, {}, {}, std::nullopt, groups.size(), steps, {}};
    for (const auto& [what, initial, shape] : rule.states(spec.shape)) {
      if (what.empty() || what.find('.') != std::string::npos || what == sum_name || what == step_name ||
          std::find(member.state_names.begin(), member.state_names.end(), what) != member.state_names.end())
        throw Error(fmt::format("{}: '{}' is no name of a state: it is empty, has a dot in it, is '{}', '{}' or there twice",
                                rule.name(), what, sum_name, step_name));
      member.state_names.push_back(what);
      const auto& its_shape = shape.value_or(spec.shape);
      member.state_specs.push_back({its_shape, Dtype::f32});
      const std::vector<float> values(static_cast<std::size_t>(its_shape.numel()), static_cast<float>(initial));
      member.state.emplace_back(Tensor::from(values, its_shape));
    }
    return member;
  }

  /// The gradient of each parameter, at the value that the loss was built with. Undefined for parameters that are frozen or not
  /// reached by the loss.
  std::vector<Tensor> gradients_of(const Tensor& loss) {
    if (!loss.defined()) throw Error(fmt::format("{}: the loss is undefined", name));
    nn::NamedParameters list;
    list.reserve(members.size());
    for (const auto& member : members) list.emplace_back(member.name, member.parameter);
    const auto leaves = nn::reached_leaves(name, loss, list);
    std::vector<Tensor> reached;
    for (const auto& leaf : leaves)
      if (leaf.defined()) reached.push_back(leaf);
    auto given = scaling ? scaled_gradients(loss, reached) : gradients(loss, reached);
    std::vector<Tensor> result(members.size());
    for (std::size_t i = 0, next = 0; i < members.size(); ++i)
      if (leaves[i].defined()) result[i] = std::move(given[next++]);
    return result;
  }

  /// The gradients of the loss in f32, through the scaled loss.
  std::vector<Tensor> scaled_gradients(const Tensor& loss, const std::vector<Tensor>& inputs) {
    if (loss.numel() != 1) return gradients(loss, inputs);  // which throws the error
    const auto device = exec::device_of_graph(loss);
    scaling->settle(device);
    const Tensor wide = cast(loss, Dtype::f32), start = reshape(scaling->moved(scaling->scale(), device), loss.shape());
    return scaling->unscaled(gradients(std::span(&wide, 1), std::span(&start, 1), inputs));
  }

  /// Gradients that were computed elsewhere, those of frozen parameters left out. Throws where one does not fit.
  std::vector<Tensor> given(std::vector<Tensor> gradients, bool may_miss) const {
    if (gradients.size() != members.size())
      throw Error(fmt::format("{}: {} gradients for {} parameters", name, gradients.size(), members.size()));
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i].parameter.frozen()) {
        gradients[i] = {};
        continue;
      }
      if (!gradients[i].defined() && may_miss) continue;
      if (!gradients[i].defined()) throw Error(fmt::format("{}: the gradient of {} is undefined", name, members[i].name));
      const auto gradient = gradients[i].spec(), parameter = members[i].parameter.value().spec();
      const auto text = [&] {
        return fmt::format("{}: {} is {}, its gradient {}", name, members[i].name, to_string(parameter), to_string(gradient));
      };
      if (gradient.shape != parameter.shape) throw ShapeError(text());
      if (!is_floating(gradient.dtype)) throw DtypeError(text());
    }
    return gradients;
  }

  /// The gradients plus the sums of accumulate().
  std::vector<Tensor> with_sums(std::vector<Tensor> all) const {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!members[i].sum || members[i].parameter.frozen()) continue;
      all[i] = all[i].defined() ? members[i].sum->value() + cast(all[i], Dtype::f32) : members[i].sum->value();
    }
    return all;
  }

  /// Lets the program's function replace them.
  std::vector<Tensor> replaced(std::vector<Tensor> all, std::vector<Tensor>& more) const {
    if (!gradient_function) return all;
    const auto before = all;
    gradient_function(all, more);
    const auto of = [&](std::size_t i) { return fmt::format("{}: the gradient function gave {}", name, members[i].name); };
    if (all.size() != before.size())
      throw Error(fmt::format("{}: the gradient function gave {} gradients for {}", name, all.size(), before.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].defined() != before[i].defined())
        throw Error(of(i) + (all[i].defined() ? " a gradient, and the step leaves it alone" : " none"));
      if (!all[i].defined()) continue;
      if (all[i].shape() != before[i].shape())
        throw ShapeError(fmt::format("{} {} for {}", of(i), to_string(all[i].shape()), to_string(before[i].shape())));
      if (!is_floating(all[i].dtype())) throw DtypeError(fmt::format("{} {}", of(i), to_string(all[i].dtype())));
    }
    require_more(more);
    return all;
  }

  std::vector<Tensor> clipped(std::vector<Tensor> gradients) const {
    if (clipping.value > 0) gradients = clip_by_value(gradients, clipping.value);
    if (clipping.norm > 0) gradients = clip_by_norm(gradients, clipping.norm, clipping.p);
    return gradients;
  }

  /// The new values of a step with their targets, and the parameters that move.
  struct Update {
    std::vector<std::pair<nn::Parameter, Tensor>> values;
    std::vector<bool> moves;                            ///< by member
    std::vector<Tensor> spared;                         ///< new values of Member::spared
    std::vector<std::pair<int, nn::Parameter>> shared;  ///< sharded: those that move, with their owners
    std::vector<Tensor> readers;                        ///< sharded: to be evaluated along
  };

  /// Parameters with an undefined gradient do not change.
  Update update(const std::vector<Tensor>& all) {
    std::vector<const Member*> moved;
    std::vector<Tensor> gradients;
    Update result;
    for (std::size_t i = 0; i < members.size(); ++i) {
      result.moves.push_back(all[i].defined());
      if (!all[i].defined()) continue;
      moved.push_back(&members[i]);
      gradients.push_back(all[i]);
    }
    // The formulas of rules are in f32, in any Autocast scope.
    const Autocast as_written(Dtype::f32);
    const auto devices = move_to_parameters(moved, gradients);
    Tensor finite;
    if (scaling) {
      const auto known = std::find_if(devices.begin(), devices.end(), [](const auto& device) { return device != nullptr; });
      scaling->settle(known == devices.end() ? nullptr : *known);
      finite = scaling->all_finite(gradients, devices);
      result.values = scaling->after(finite);
      count_spared(finite, result);
    }
    const auto given = gradients;
    gradients = clipped(std::move(gradients));
    std::size_t changes = result.values.size() + moved.size();
    for (const auto* member : moved) changes += member->state.size();
    result.values.reserve(changes);
    // Rules count the steps that a parameter has made. So parameters are updated together that share the group, the device and
    // that count.
    std::vector<std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (!keeps(*moved[i])) continue;
      const auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& together) {
        const auto& first = *moved[together[0]];
        return first.group == moved[i]->group && first.missed == moved[i]->missed && first.spared.same(moved[i]->spared) &&
               devices[together[0]] == devices[i];
      });
      (found == alike.end() ? alike.emplace_back() : *found).push_back(i);
    }
    for (const auto& together : alike) {
      const auto& first = *moved[together[0]];
      const auto group = first.group;
      std::vector<Rule::Item> items;
      for (auto i : together)
        items.push_back({moved[i]->parameter, gradients[i], {moved[i]->state.begin(), moved[i]->state.end()}});
      const auto& rule = *groups[group].rule;
      Rule::Step step{steps + 1 - first.missed, groups[group].rate, groups[group].momentum};
      if (scaling) {
        step.finite = scaling->moved(finite, devices[together[0]]);
        step.made = scaling->moved(cast(made(first), Dtype::f32) + 1.0, devices[together[0]]);
      }
      auto results = rule.update_all(items, step);
      if (results.size() != items.size())
        throw Error(fmt::format("{}: update_all() gave {} results for {} parameters", rule.name(), results.size(), items.size()));
      for (std::size_t i = 0; i < items.size(); ++i) {
        const auto& member = *moved[together[i]];
        require_result(rule, member.name, items[i], results[i]);
        if (scaling && !dynamic_cast<const NativeRule*>(&rule)) keep_unless(step.finite, items[i], results[i]);
        result.values.emplace_back(member.parameter, std::move(results[i].parameter));
        for (std::size_t k = 0; k < member.state.size(); ++k)
          result.values.emplace_back(member.state[k], std::move(results[i].states[k]));
      }
    }
    if (sharding) {
      // What only other ranks need is evaluated here as well: its collectives are all ranks'.
      std::set<const Node*> used;
      for (std::size_t i = 0; i < moved.size(); ++i)
        if (keeps(*moved[i])) used.insert(node_of(given[i]).get());
      std::vector<Tensor> others;
      for (std::size_t i = 0; i < moved.size(); ++i) {
        result.shared.emplace_back(moved[i]->owner, moved[i]->parameter);
        if (keeps(*moved[i])) continue;
        others.push_back(moved[i]->parameter);
        if (used.insert(node_of(given[i]).get()).second) others.push_back(given[i]);
      }
      result.readers = Sharding::readers_of(others);
    }
    return result;
  }

  /// The parameters' devices; those without one get the device of their gradients. With several devices, gradients go to their
  /// parameters, also those that depend on no device.
  Scaling::Devices move_to_parameters(const std::vector<const Member*>& moved, std::vector<Tensor>& gradients) const {
    Scaling::Devices devices;
    auto finder = scaling ? scaling->finder() : exec::DeviceFinder();
    const ocl::Context* first = nullptr;
    bool several = false;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      devices.push_back(exec::device_of_graph(moved[i]->parameter.value()));
      if (!devices[i]) devices[i] = finder.find(gradients[i]);
      if (!devices[i]) continue;
      several = several || (first && first != devices[i].get());
      first = devices[i].get();
    }
    // A finder of its own: graph over the gradients does not know the device of a loss scale.
    exec::DeviceFinder plain;
    for (std::size_t i = 0; several && i < moved.size(); ++i)
      if (devices[i] && plain.find(gradients[i]) != devices[i]) gradients[i] = copy_to(gradients[i], device_with(devices[i]));
    return devices;
  }

  /// With a loss scale: the number of steps that a parameter has made.
  Tensor made(const Member& member) const {
    const auto there = scaling->made() - static_cast<double>(member.missed);
    return member.spared.defined() ? there + member.spared : there;
  }

  /// Parameters that miss the same steps share one count.
  void count_spared(const Tensor& finite, Update& update) const {
    const Tensor skipped = cast(logical_not(finite), Dtype::i64);
    std::map<const Node*, Tensor> next;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& now = members[i].spared;
      auto& tensor = update.spared.emplace_back(now);
      if (update.moves[i]) continue;
      auto& shared = next[node_of(now).get()];
      if (!shared.defined()) shared = now.defined() ? now + skipped : skipped;
      tensor = shared;
    }
  }

  /// Keeps the old values where the step is skipped.
  static void keep_unless(const Tensor& finite, const Rule::Item& item, Rule::Result& result) {
    if (item.parameter.numel() == 0) return;
    result.parameter = where(finite, result.parameter, item.parameter);
    for (std::size_t i = 0; i < item.states.size(); ++i) result.states[i] = where(finite, result.states[i], item.states[i]);
  }

  /// By member; shared counts stay shared.
  void keep_spared(const std::vector<Tensor>& spared, const std::function<Tensor(const Tensor&)>& kept) {
    std::map<const Node*, Tensor> shared;
    for (const auto& tensor : spared)
      if (auto& known = shared[node_of(tensor).get()]; tensor.defined() && !known.defined()) known = kept(tensor);
    for (std::size_t i = 0; i < spared.size(); ++i) members[i].spared = shared.at(node_of(spared[i]).get());
  }

  /// Computes the update together with `more`, then changes the state: a failure changes nothing.
  void run(Update update, bool clear, std::vector<Tensor> more = {}) {
    for (auto& [target, value] : update.values) {
      // The new values are uncounted, so that they may overwrite old ones unless other handles hold these.
      clnet::detail::access::count_as(value, clnet::detail::Counted::not_at_all);
      more.push_back(uncounted(value));
    }
    for (const auto& tensor : update.spared)
      if (tensor.defined()) more.push_back(tensor);
    more.insert(more.end(), update.readers.begin(), update.readers.end());
    {
      std::vector<std::shared_ptr<const Slot>> states;
      for (std::size_t i = 0; i < members.size(); ++i)
        if (update.moves[i])
          for (const auto& state : members[i].state) states.push_back(slot_of(state));
      std::vector<const Node*> results;
      for (const auto& [target, value] : update.values) results.push_back(node_of(value).get());
      exec::evaluate_checked(more, nullptr, {std::move(states), std::move(results)});
    }
    // Not assign(), which would evaluate once more.
    for (auto& [target, value] : update.values) target.set(value);
    ++steps;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!update.moves[i]) ++members[i].missed;
    keep_spared(update.spared, [](const Tensor& tensor) { return tensor.detach(); });
    if (clear)
      for (auto& member : members) member.sum.reset();
    if (sharding) sharding->exchange(update.shared);
  }

  /// Adds them to the sums of accumulate(), computed together with `more`; a failure changes nothing.
  void add_up(const std::vector<Tensor>& gradients, std::vector<Tensor> more) {
    std::vector<std::pair<Member*, Tensor>> sums;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      auto& member = members[i];
      const Tensor gradient = cast(gradients[i], Dtype::f32);
      sums.emplace_back(&member, uncounted(member.sum ? member.sum->value() + gradient : gradient));
      more.push_back(uncounted(sums.back().second));
    }
    {
      std::vector<std::shared_ptr<const Slot>> before;
      std::vector<const Node*> after;
      for (const auto& [member, sum] : sums) {
        if (member->sum) before.push_back(slot_of(*member->sum));
        after.push_back(node_of(sum).get());
      }
      exec::evaluate_checked(more, nullptr, {std::move(before), std::move(after)});
    }
    for (auto& [member, sum] : sums) {
      if (member->sum)
        member->sum->set(sum);
      else
        member->sum.emplace(sum);
    }
  }

  Group& group(std::size_t which) {
    if (which >= groups.size()) throw Error(fmt::format("{}: there is no group {}, only {}", name, which, groups.size()));
    return groups[which];
  }

  void require_more(std::span<const Tensor> more) const {
    for (std::size_t i = 0; i < more.size(); ++i)
      if (!more[i].defined()) throw Error(fmt::format("{}: result {} to be computed along is undefined", name, i));
  }
};

}  // namespace clnet::optim

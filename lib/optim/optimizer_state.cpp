// An optimizer's state for checkpoints.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/nn/parameter.h"
#include "lib/optim/optimizer_impl.h"
#include "lib/optim/state_reader.h"

namespace clnet::optim {

namespace {

std::string rate_name(std::size_t group) { return fmt::format("learning_rate.{}", group); }
std::string initial_rate_name(std::size_t group) { return fmt::format("initial_rate.{}", group); }
std::string momentum_name(std::size_t group) { return fmt::format("momentum.{}", group); }

}  // namespace

io::StateDict Optimizer::state_dict() const {
  require_made("state_dict");
  impl_->require_idle("state_dict");  // states may be lost until the new ones are there
  io::StateDict result{{"step", Tensor::scalar(static_cast<double>(impl_->steps), Dtype::i64)}};
  if (impl_->scaling)
    for (auto& part : impl_->scaling->state_dict()) result.push_back(std::move(part));
  for (const auto& member : impl_->members) {
    if (member.missed != 0)
      result.emplace_back(
          fmt::format("{}.{}", member.name, step_name),
          impl_->scaling ? impl_->made(member) : Tensor::scalar(static_cast<double>(impl_->steps - member.missed), Dtype::i64));
    for (std::size_t i = 0; i < member.state_names.size(); ++i) {
      auto value = i < member.state.size() ? member.state[i].value() : Tensor{};
      if (impl_->sharding) value = impl_->sharding->to_first(member.owner, member.state_specs[i], value);
      if (value.defined()) result.emplace_back(member.name + '.' + member.state_names[i], value);
    }
    if (member.sum) result.emplace_back(fmt::format("{}.{}", member.name, sum_name), member.sum->value());
  }
  for (std::size_t i = 0; i < impl_->groups.size(); ++i) {
    result.emplace_back(rate_name(i), state_number(impl_->groups[i].rate));
    result.emplace_back(initial_rate_name(i), state_number(impl_->groups[i].initial));
    if (const auto& momentum = impl_->groups[i].momentum) result.emplace_back(momentum_name(i), state_number(*momentum));
  }
  return result;
}

void Optimizer::load_state_dict(const io::StateDict& state) {
  require_made("load_state_dict");
  impl_->require_idle("load_state_dict");
  StateReader reader(state);
  const auto steps = reader.count("step");
  std::vector<std::pair<nn::Parameter, Tensor>> changes;
  // `missed` counts from the steps actually applied when a loss scale is on.
  auto most = steps;
  if (impl_->scaling) changes = impl_->scaling->read(reader, most);
  std::vector<Tensor> sums;
  std::vector<std::int64_t> missed;
  auto groups = impl_->groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    // States of earlier versions have neither.
    if (reader.has(rate_name(i)) || reader.has(initial_rate_name(i))) {
      groups[i].rate = reader.number(rate_name(i));
      groups[i].initial = reader.number(initial_rate_name(i));
    }
    for (const double rate : {groups[i].rate, groups[i].initial})
      if (!(rate >= 0)) reader.fault(fmt::format("the learning rate of group {} is {}", i, rate));
    groups[i].momentum.reset();
    if (!groups[i].rule->momentum() || !reader.has(momentum_name(i))) continue;
    const double momentum = reader.number(momentum_name(i));
    if (!(momentum >= 0 && momentum < 1)) reader.fault(fmt::format("the momentum of group {} is {}", i, momentum));
    groups[i].momentum = momentum;
  }
  for (const auto& member : impl_->members) {
    const auto own = fmt::format("{}.{}", member.name, step_name);
    missed.push_back(reader.has(own) ? most - reader.count(own) : 0);
    if (missed.back() < 0) reader.fault(fmt::format("{} is more than the optimizer's own, {}", own, most));
    for (std::size_t i = 0; i < member.state_names.size(); ++i) {
      const auto what = member.name + '.' + member.state_names[i];
      if (i < member.state.size())
        changes.emplace_back(member.state[i], reader.take(what, member.state_specs[i]));
      else if (reader.has(what))
        reader.take(what, member.state_specs[i]);
    }
    const auto sum = fmt::format("{}.{}", member.name, sum_name);
    sums.push_back(reader.has(sum) ? reader.take(sum, {member.parameter.value().shape(), Dtype::f32}) : Tensor{});
  }
  reader.require_fit("optimizer");
  nn::prepare_to_set(changes);
  impl_->steps = steps;
  impl_->groups = std::move(groups);
  for (std::size_t i = 0; i < missed.size(); ++i) {
    impl_->members[i].missed = missed[i];
    impl_->members[i].spared = {};
  }
  for (auto& [parameter, tensor] : changes) parameter.set(tensor);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    impl_->members[i].sum.reset();
    if (sums[i].defined()) impl_->members[i].sum.emplace(sums[i]);
  }
}

}  // namespace clnet::optim

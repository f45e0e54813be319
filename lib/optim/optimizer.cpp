#include "clnet/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/dist/members.h"
#include "lib/exec/collect/copy.h"
#include "lib/exec/evaluate.h"
#include "lib/graph/require.h"
#include "lib/nn/parameter.h"
#include "lib/optim/optimizer_impl.h"

namespace clnet::optim {

Parameters::Parameters(const nn::Module& module) : list_(module.parameters()) {}
Parameters::Parameters(nn::NamedParameters parameters) : list_(std::move(parameters)) {}
Parameters::Parameters(const nn::Module& module, const std::function<bool(const std::string& name)>& wanted) {
  for (auto& named : module.parameters())
    if (wanted(named.first)) list_.push_back(std::move(named));
}

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

Optimizer::Optimizer(const Parameters& parameters, std::shared_ptr<const Rule> rule, double learning_rate,
                     const Clipping& clipping)
    : impl_(std::make_shared<Impl>()) {
  if (!rule) throw Error("optimizer: made without a rule");
  impl_->name = rule->name();
  require_positive_or_zero(impl_->name, "learning_rate", learning_rate);
  if (parameters.list().empty()) throw Error(fmt::format("{}: there are no parameters to optimize", impl_->name));
  set_clipping(clipping);
  impl_->add(parameters, std::move(rule), learning_rate);
}

void Optimizer::add_group(const Parameters& parameters, std::shared_ptr<const Rule> rule, double learning_rate) {
  require_made("add_group");
  impl_->require_idle("add_group");
  if (!rule) throw Error("optimizer: a group without a rule");
  if (parameters.list().empty()) throw Error(fmt::format("{}: a group without parameters", rule->name()));
  require_positive_or_zero(rule->name(), "learning_rate", learning_rate);
  impl_->add(parameters, std::move(rule), learning_rate);
}

void Optimizer::set_clipping(const Clipping& clipping) {
  require_made("set_clipping");
  require(clipping.norm >= 0, impl_->name, "clip_norm", clipping.norm);
  require(clipping.value >= 0, impl_->name, "clip_value", clipping.value);
  require(clipping.p > 0, impl_->name, "clipping's p", clipping.p);
  impl_->clipping = clipping;
}

const Clipping& Optimizer::clipping() const {
  require_made("clipping");
  return impl_->clipping;
}

void Optimizer::require_same_clipping(const Clipping& clipping) const {
  require_made("add_group");
  const auto& own = impl_->clipping;
  if (clipping != Clipping{} && (clipping.norm != own.norm || clipping.value != own.value))
    throw Error(fmt::format("{}: a group cannot clip by norm {} and value {}: clipping is of all groups together", impl_->name,
                            clipping.norm, clipping.value));
}

void Optimizer::require_made(std::string_view call) const {
  if (!impl_) throw Error(fmt::format("optimizer: {}() on an optimizer that was never made", call));
}

Tensor Optimizer::step(const Tensor& loss, std::span<const Tensor> more) {
  require_made("step");
  Impl::Stepping stepping(*impl_, "step");
  impl_->require_more(more);
  std::vector<Tensor> wanted(more.begin(), more.end());
  auto update = impl_->update(impl_->replaced(impl_->with_sums(impl_->gradients_of(loss)), wanted));
  wanted.push_back(loss);
  impl_->run(std::move(update), true, std::move(wanted));
  stepping.done();
  return loss.detach();
}
Tensor Optimizer::step(const Tensor& loss, std::initializer_list<Tensor> more) {
  return step(loss, std::span(more.begin(), more.size()));
}

Tensor Optimizer::accumulate(const Tensor& loss, std::span<const Tensor> more) {
  require_made("accumulate");
  Impl::Stepping stepping(*impl_, "accumulate");
  impl_->require_more(more);
  const auto gradients = impl_->gradients_of(loss);
  std::vector<Tensor> wanted(more.begin(), more.end());
  wanted.push_back(loss);
  impl_->add_up(gradients, std::move(wanted));
  stepping.done();
  return loss.detach();
}
Tensor Optimizer::accumulate(const Tensor& loss, std::initializer_list<Tensor> more) {
  return accumulate(loss, std::span(more.begin(), more.size()));
}

void Optimizer::step() {
  require_made("step");
  Impl::Stepping stepping(*impl_, "step");
  const auto gradients = impl_->with_sums(std::vector<Tensor>(impl_->members.size()));
  if (std::none_of(gradients.begin(), gradients.end(), [](const Tensor& sum) { return sum.defined(); }))
    throw Error(fmt::format("{}: step() without a loss, and nothing was accumulated", impl_->name));
  std::vector<Tensor> more;
  auto update = impl_->update(impl_->replaced(gradients, more));
  impl_->run(std::move(update), true, std::move(more));
  stepping.done();
}

void Optimizer::apply(const std::vector<Tensor>& gradients) {
  require_made("apply");
  Impl::Stepping stepping(*impl_, "apply");
  impl_->run(impl_->update(impl_->given(gradients, false)), false);
  stepping.done();
}

void Optimizer::apply_with_sums(const std::vector<Tensor>& gradients) {
  require_made("apply_with_sums");
  Impl::Stepping stepping(*impl_, "apply_with_sums");
  std::vector<Tensor> more;
  auto update = impl_->update(impl_->replaced(impl_->with_sums(impl_->given(gradients, true)), more));
  impl_->run(std::move(update), true, std::move(more));
  stepping.done();
}

void Optimizer::add_to_sums(const std::vector<Tensor>& gradients) {
  require_made("add_to_sums");
  Impl::Stepping stepping(*impl_, "add_to_sums");
  impl_->add_up(impl_->given(gradients, true), {});
  stepping.done();
}

void Optimizer::set_gradient_function(GradientFunction function) {
  require_made("set_gradient_function");
  impl_->require_idle("set_gradient_function");
  impl_->gradient_function = std::move(function);
}

void Optimizer::shard(const dist::Group& group) {
  require_made("shard");
  impl_->require_idle("shard");
  if (group.size() == 1 && !impl_->sharding) return;
  if (impl_->sharding) {
    if (dist::members_of(group)->id == dist::members_of(impl_->sharding->group())->id) return;
    throw Error(fmt::format("{}: its states are sharded over another group's {} ranks", impl_->name, shards()));
  }
  impl_->sharding.emplace(group);
  impl_->deal_from(0);
}
int Optimizer::shards() const {
  require_made("shards");
  return impl_->sharding ? impl_->sharding->group().size() : 1;
}
std::int64_t Optimizer::state_bytes() const {
  require_made("state_bytes");
  std::int64_t bytes = 0;
  for (const auto& member : impl_->members)
    for (const auto& state : member.state) bytes += state.value().spec().bytes();
  return bytes;
}

void Optimizer::set_loss_scale(const LossScale& options) {
  require_made("set_loss_scale");
  impl_->require_idle("set_loss_scale");
  const Tensor made = impl_->scaling ? impl_->scaling->made() : Tensor::scalar(static_cast<double>(impl_->steps), Dtype::i64);
  impl_->scaling.emplace(options, made);
}
void Optimizer::remove_loss_scale() {
  require_made("remove_loss_scale");
  impl_->require_idle("remove_loss_scale");
  if (!impl_->scaling) return;
  std::vector<Tensor> made;
  for (const auto& member : impl_->members) made.push_back(impl_->made(member));
  eval(made);
  // Without a loss scale, a parameter has made all steps except the missed ones.
  std::vector<std::int64_t> missed;
  for (const auto& tensor : made) missed.push_back(impl_->steps - tensor.item<std::int64_t>());
  for (std::size_t i = 0; i < missed.size(); ++i) {
    impl_->members[i].missed = missed[i];
    impl_->members[i].spared = {};
  }
  impl_->scaling.reset();
}
Tensor Optimizer::loss_scale() const {
  require_made("loss_scale");
  return impl_->scaling ? impl_->scaling->scale() : Tensor{};
}
Tensor Optimizer::steps_made() const {
  require_made("steps_made");
  return impl_->scaling ? impl_->scaling->made() : Tensor{};
}

double Optimizer::learning_rate(std::size_t group) const {
  require_made("learning_rate");
  return impl_->group(group).rate;
}

void Optimizer::set_learning_rate(double rate) {
  require_made("set_learning_rate");
  require_positive_or_zero("optimizer", "the learning rate", rate);
  const double first = impl_->groups[0].initial;
  for (auto& group : impl_->groups) group.rate = first > 0 ? rate * (group.initial / first) : rate;
}

void Optimizer::set_group_learning_rate(std::size_t group, double rate) {
  (void)learning_rate(group);
  require_positive_or_zero("optimizer", "the learning rate", rate);
  auto& groups = impl_->groups;
  groups[group].rate = rate;
  // A rate of 0 gives no proportion: it remains as before.
  if (groups[0].rate == 0) return;
  if (group > 0) {
    groups[group].initial = rate * (groups[0].initial / groups[0].rate);
    return;
  }
  groups[0].initial = rate;
  for (auto& other : groups) other.initial = other.rate;
}

std::optional<double> Optimizer::momentum(std::size_t group) const {
  require_made("momentum");
  const auto& its = impl_->group(group);
  return its.momentum ? its.momentum : its.rule->momentum();
}

void Optimizer::set_momentum(double momentum) {
  require_made("set_momentum");
  require_share("optimizer", "the momentum", momentum);
  bool found = false;
  for (auto& group : impl_->groups) {
    if (!group.rule->momentum()) continue;
    group.momentum = momentum;
    found = true;
  }
  if (!found) throw Error(fmt::format("{}: has no momentum that could be set", impl_->name));
}

void Optimizer::set_group_momentum(std::size_t group, double momentum) {
  require_made("set_group_momentum");
  auto& its = impl_->group(group);
  require_share("optimizer", "the momentum", momentum);
  if (!its.rule->momentum()) throw Error(fmt::format("{}: group {} has no momentum that could be set", its.rule->name(), group));
  its.momentum = momentum;
}

nn::NamedParameters Optimizer::parameters() const {
  require_made("parameters");
  nn::NamedParameters result;
  for (const auto& member : impl_->members) result.emplace_back(member.name, member.parameter);
  return result;
}

void Optimizer::to(const Device& device) {
  require_made("to");
  impl_->require_idle("to");
  std::vector<nn::Parameter> all;
  for (const auto& member : impl_->members) {
    all.insert(all.end(), member.state.begin(), member.state.end());
    if (member.sum) all.push_back(*member.sum);
  }
  std::vector<Tensor> spared;
  if (impl_->scaling) {
    for (auto& part : impl_->scaling->parts()) all.push_back(part);
    for (const auto& member : impl_->members) spared.push_back(member.spared);
  }
  auto copies = nn::copies_on(all, device);
  impl_->keep_spared(spared, [&](const Tensor& tensor) { return exec::copy_now(tensor, device); });
  for (auto& [parameter, copy] : copies) parameter.set(copy);
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
  return std::all_of(impl_->members.begin(), impl_->members.end(), [&](const Impl::Member& ours) {
    return std::any_of(theirs.begin(), theirs.end(), [&](const auto& named) { return named.second.same(ours.parameter); });
  });
}

}  // namespace clnet::optim

#include "clnet/optim/ema.h"

#include <algorithm>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/nn/parameter.h"
#include "lib/optim/options.h"
#include "lib/optim/state_reader.h"

namespace clnet::optim {

struct EMA::Impl {
  struct Averaged {
    std::string name;
    nn::Parameter parameter;
    nn::Parameter average;  ///< f32
    Tensor kept;            ///< the parameter's own value while they are swapped
    Tensor lent;            ///< and what it holds meanwhile
  };
  EMAOptions options;
  std::int64_t updates = 0;
  bool swapped = false;
  std::vector<Averaged> entries;

  /// The average in the parameter's dtype.
  static Tensor stored(const Averaged& entry) { return cast(entry.average.value(), entry.parameter.value().dtype()); }

  void require_not_swapped(const char* call) const {
    if (swapped) throw Error(fmt::format("EMA: {}() while the module holds the averages; swap() first", call));
  }
};

EMA::EMA(const nn::Module& module, double decay) : EMA(module, EMAOptions{.decay = decay}) {}

EMA::EMA(const nn::Module& module, const EMAOptions& options) : impl_(std::make_shared<Impl>()) {
  require(options.decay >= 0 && options.decay <= 1, "EMA", "decay", options.decay);
  impl_->options = options;
  std::vector<Tensor> present;
  const auto parameters = module.parameters();
  for (const auto& [name, parameter] : parameters) refuse_f64("EMA", name, parameter.value().spec());
  for (const auto& [name, parameter] : parameters) present.push_back(cast(parameter.value(), Dtype::f32));
  eval(present);
  for (std::size_t i = 0; i < present.size(); ++i)
    impl_->entries.push_back({parameters[i].first, parameters[i].second, nn::Parameter(present[i]), {}, {}});
}

void EMA::update() {
  impl_->require_not_swapped("update");
  const auto n = static_cast<double>(impl_->updates);
  const double decay = impl_->options.warm_up ? std::min(impl_->options.decay, (1 + n) / (10 + n)) : impl_->options.decay;
  std::vector<std::pair<nn::Parameter, Tensor>> values;
  for (const auto& entry : impl_->entries)
    values.emplace_back(entry.average, entry.average.value() * decay + cast(entry.parameter.value(), Dtype::f32) * (1 - decay));
  nn::assign(values);
  ++impl_->updates;
}

std::int64_t EMA::updates() const { return impl_->updates; }
bool EMA::swapped() const { return impl_->swapped; }

bool EMA::made_for(const nn::Module& module) const {
  const auto theirs = module.parameters();
  return std::all_of(impl_->entries.begin(), impl_->entries.end(), [&](const Impl::Averaged& ours) {
    return std::any_of(theirs.begin(), theirs.end(), [&](const auto& named) { return named.second.same(ours.parameter); });
  });
}

io::StateDict EMA::values() const {
  io::StateDict result;
  for (const auto& entry : impl_->entries) result.emplace_back(entry.name, Impl::stored(entry));
  return result;
}

void EMA::swap() {
  std::vector<std::pair<nn::Parameter, Tensor>> values;
  for (const auto& entry : impl_->entries) {
    // What was trained meanwhile would be lost.
    if (impl_->swapped && !entry.parameter.value().same(entry.lent))
      throw Error(fmt::format("EMA: {} has changed while the module held the averages", entry.name));
    values.emplace_back(entry.parameter, impl_->swapped ? entry.kept : Impl::stored(entry));
  }
  std::vector<Tensor> before;
  for (const auto& entry : impl_->entries) before.push_back(impl_->swapped ? Tensor{} : entry.parameter.value());
  nn::assign(values);
  for (std::size_t i = 0; i < before.size(); ++i) {
    auto& entry = impl_->entries[i];
    entry.lent = before[i].defined() ? entry.parameter.value() : Tensor{};
    entry.kept = std::move(before[i]);
  }
  impl_->swapped = !impl_->swapped;
}

void EMA::to(const Device& device) {
  impl_->require_not_swapped("to");
  std::vector<nn::Parameter> all;
  for (const auto& entry : impl_->entries) all.push_back(entry.average);
  for (auto& [average, copy] : nn::copies_on(all, device)) average.set(copy);
}

void EMA::apply_to_module() {
  impl_->require_not_swapped("apply_to_module");
  std::vector<std::pair<nn::Parameter, Tensor>> values;
  for (const auto& entry : impl_->entries) values.emplace_back(entry.parameter, Impl::stored(entry));
  nn::assign(values);
}

io::StateDict EMA::state_dict() const {
  io::StateDict result{{"step", Tensor::scalar(static_cast<double>(impl_->updates), Dtype::i64)}};
  for (const auto& entry : impl_->entries) result.emplace_back("average." + entry.name, entry.average.value());
  return result;
}

void EMA::load_state_dict(const io::StateDict& state) {
  impl_->require_not_swapped("load_state_dict");
  StateReader reader(state);
  const auto updates = reader.count("step");
  std::vector<std::pair<nn::Parameter, Tensor>> changes;
  for (const auto& entry : impl_->entries)
    changes.emplace_back(entry.average, reader.take("average." + entry.name, entry.average.value().spec()));
  reader.require_fit("average");
  nn::prepare_to_set(changes);
  impl_->updates = updates;
  for (auto& [average, value] : changes) average.set(value);
}

}  // namespace clnet::optim

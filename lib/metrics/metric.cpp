#include <fmt/format.h>

#include <utility>

#include "clnet/autocast.h"
#include "clnet/error.h"
#include "clnet/metrics.h"
#include "lib/optim/state_reader.h"

namespace clnet::metrics {

Formula::~Formula() = default;

namespace {

/// A formula under another name.
class Named : public Formula {
 public:
  Named(std::shared_ptr<const Formula> formula, std::string name) : formula_(std::move(formula)), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  io::StateDict states() const override { return formula_->states(); }
  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    return formula_->update(states, outputs, labels);
  }
  Result result(const std::vector<Tensor>& states) const override { return formula_->result(states); }

 private:
  std::shared_ptr<const Formula> formula_;
  std::string name_;
};

/// A formula over one of several outputs.
class On : public Formula {
 public:
  On(std::shared_ptr<const Formula> formula, std::size_t output, std::size_t labels)
      : formula_(std::move(formula)), output_(output), labels_(labels) {}
  std::string name() const override { return formula_->name(); }
  io::StateDict states() const override { return formula_->states(); }
  std::vector<Tensor> update(const std::vector<Tensor>& states, std::span<const Tensor> outputs,
                             std::span<const Tensor> labels) const override {
    const auto one = [&](std::span<const Tensor> all, std::size_t which, std::string_view kind) {
      if (which < all.size()) return all.subspan(which, 1);
      throw Error(fmt::format("{}: is of {} {}, and there are {}", name(), kind, which, all.size()));
    };
    return formula_->update(states, one(outputs, output_, "output"), one(labels, labels_, "labels"));
  }
  Result result(const std::vector<Tensor>& states) const override { return formula_->result(states); }

 private:
  std::shared_ptr<const Formula> formula_;
  std::size_t output_, labels_;
};

}  // namespace

struct Metric::Impl {
  std::shared_ptr<const Formula> formula;
  std::string name;
  std::vector<std::string> names;
  std::vector<Tensor> states;
  bool built = false;  ///< the states have a graph behind them

  void reset() {
    names.clear();
    states.clear();
    for (auto& [state_name, tensor] : formula->states()) {
      names.push_back(state_name);
      states.push_back(tensor);
    }
    built = false;
  }

  void detach() {
    if (!std::exchange(built, false)) return;
    eval(states);  // together, where nobody did
    for (auto& state : states) state = state.detach();
  }

  void update(std::span<const Tensor> outputs, std::span<const Tensor> labels) {
    detach();
    // Formulas are as they are written, in any scope of the model's.
    const Autocast as_written(Dtype::f32);
    for (const auto all : {outputs, labels})
      for (const auto& tensor : all)
        if (!tensor.defined()) throw Error(fmt::format("{}: an undefined tensor among outputs and labels", name));
    auto next = formula->update(states, outputs, labels);
    if (next.size() != states.size())
      throw Error(fmt::format("{}: update() gave {} states, expected {}", name, next.size(), states.size()));
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (!next[i].defined()) throw Error(fmt::format("{}: update() gave the state {} undefined", name, names[i]));
      const auto text = [&] {
        return fmt::format("{}: update() gave the state {} as {}, not {}", name, names[i], to_string(next[i].spec()),
                           to_string(states[i].spec()));
      };
      if (next[i].shape() != states[i].shape()) throw ShapeError(text());
      if (next[i].dtype() != states[i].dtype()) throw DtypeError(text());
    }
    states = std::move(next);
    built = true;
  }
};

Metric::Metric(std::shared_ptr<const Formula> formula) : impl_(std::make_shared<Impl>()) {
  if (!formula) throw Error("metric: made without a formula");
  impl_->formula = std::move(formula);
  impl_->name = impl_->formula->name();
  impl_->reset();
}

std::vector<Tensor> Metric::update(const Tensor& output, const Tensor& labels) {
  return update(std::span(&output, 1), std::span(&labels, 1));
}

std::vector<Tensor> Metric::update(std::span<const Tensor> outputs, std::span<const Tensor> labels) {
  impl_->update(outputs, labels);
  return impl_->states;
}

void Metric::detach() { impl_->detach(); }
double Metric::value() const { return result().value; }

Result Metric::result() const {
  impl_->detach();
  auto result = impl_->formula->result(impl_->states);
  result.name = impl_->name;
  return result;
}

void Metric::reset() { impl_->reset(); }
const std::string& Metric::name() const { return impl_->name; }

Metric Metric::named(std::string name) const { return Metric(std::make_shared<Named>(impl_->formula, std::move(name))); }
Metric Metric::on(std::size_t output, std::size_t labels) const {
  return Metric(std::make_shared<On>(impl_->formula, output, labels));
}
Metric Metric::fresh() const { return Metric(impl_->formula); }

io::StateDict Metric::state_dict() const {
  impl_->detach();
  io::StateDict state;
  for (std::size_t i = 0; i < impl_->states.size(); ++i) state.emplace_back(impl_->names[i], impl_->states[i]);
  return state;
}

void Metric::load_state_dict(const io::StateDict& state) {
  optim::StateReader reader(state);
  std::vector<Tensor> next;
  for (std::size_t i = 0; i < impl_->states.size(); ++i) next.push_back(reader.take(impl_->names[i], impl_->states[i].spec()));
  reader.require_fit(fmt::format("metric {}", impl_->name));
  for (auto& tensor : next) tensor = tensor.detach();
  impl_->states = std::move(next);
  impl_->built = false;
}

std::vector<Tensor> update(std::span<Metric> metrics, std::span<const Tensor> outputs, std::span<const Tensor> labels) {
  std::vector<Tensor> all;
  for (auto& metric : metrics)
    for (auto& state : metric.update(outputs, labels)) all.push_back(std::move(state));
  return all;
}

std::vector<Result> results(std::span<const Metric> metrics) {
  std::vector<Result> all;
  for (const auto& metric : metrics) all.push_back(metric.result());
  return all;
}

}  // namespace clnet::metrics

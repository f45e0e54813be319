#include <fmt/format.h>

#include <functional>
#include <map>

#include "clnet/error.h"
#include "clnet/nn.h"
#include "clnet/ops.h"
#include "lib/nn/here.h"
#include "lib/nn/module_state.h"
#include "lib/nn/module_text.h"

namespace clnet::nn {

/// What summary() collects while it runs a model without computing anything.
struct SummaryLine {
  const void* module;
  std::string kind;
  Shape output;
};

void note_for_summary(const void* state, const Module& module, const Tensor& output) {
  if (auto* lines = here().summary) lines->push_back({state, module.kind(), output.shape()});
}

std::string Module::summary(const Shape& sample, Dtype dtype) {
  std::map<const void*, std::string> names;
  std::map<const void*, std::int64_t> counts;
  std::map<const void*, bool> passes_on;  // a layer of children without parameters of its own
  const std::function<void(const State&, const std::string&)> name_all = [&](const State& state, const std::string& name) {
    if (!names.emplace(&state, name).second) return;  // it has another name, too
    passes_on[&state] = !state.children.empty() && state.parameters.empty();
    for (const auto& [own, parameter] : state.parameters) counts[&state] += parameter.value().numel();
    for (const auto& [own, child] : state.children) name_all(*State::present(child), name.empty() ? own : name + '.' + own);
  };
  name_all(*present(), "");

  std::vector<SummaryLine> lines;
  {
    const KeptModes kept(*this);
    struct Restore {
      std::vector<SummaryLine>* outer;
      ~Restore() { here().summary = outer; }
    } restore{here().summary};
    train(false);  // a forward pass must not touch running statistics
    here().summary = &lines;
    std::vector<std::int64_t> batch{1};
    batch.insert(batch.end(), sample.begin(), sample.end());
    try {
      (*this)(zeros(Shape(batch), dtype));
    } catch (const ShapeError& error) {
      throw ShapeError(fmt::format("summary of one sample of shape {}: {}", to_string(sample), error.what()));
    }
  }

  std::string text = fmt::format("{:<24} {:<52} {:<22} {:>12}\n", "name", "layer", "output", "parameters");
  for (const auto& line : lines)
    if (!passes_on[line.module])
      text += fmt::format("{:<24} {:<52} {:<22} {:>12}\n", names[line.module], line.kind, to_string(line.output),
                          counts[line.module]);
  return text + fmt::format("{} parameters\n", parameter_count());
}

}  // namespace clnet::nn

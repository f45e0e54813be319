#include "lib/graph/composition.h"

#include <algorithm>

namespace clnet {

namespace {
thread_local Compositions* current_compositions = nullptr;
}

void Compositions::add(Composition composition) {
  const auto& call = all_.emplace_back(std::move(composition));
  for (const auto& output : call.outputs) {
    // A function that does nothing returns its input.
    const auto is_output = [&](const Tensor& input) { return input.defined() && input.same(output); };
    if (!output.defined() || std::any_of(call.inputs.begin(), call.inputs.end(), is_output)) continue;
    by_output_[{node_of(output).get(), output_of(output)}].push_back(&call);
  }
}

std::vector<const Composition*> Compositions::of(const Tensor& output) const {
  const auto found = by_output_.find({node_of(output).get(), output_of(output)});
  if (found == by_output_.end()) return {};
  return {found->second.rbegin(), found->second.rend()};
}

Compositions* composing() { return current_compositions; }

Composing::Composing(Compositions& into) : before_(std::exchange(current_compositions, &into)) {}
Composing::~Composing() { current_compositions = before_; }

}  // namespace clnet

#include <algorithm>
#include <chrono>
#include <map>

#include "tests/fuzz/run.h"

namespace clnet::fuzz {

Program without_unused(const Program& program) {
  std::vector<bool> needed(program.steps.size(), false);
  for (const auto& evaluation : program.evaluations)
    for (const auto& ref : evaluation.values) needed[ref.step] = true;
  for (auto k = program.steps.size(); k-- > 0;)
    if (needed[k])
      for (const auto& input : program.steps[k].inputs) needed[input.step] = true;
  std::vector<std::size_t> place(program.steps.size() + 1);
  Program result;
  result.seed = program.seed;
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    place[k] = result.steps.size();
    if (!needed[k]) continue;
    result.steps.push_back(program.steps[k]);
    for (auto& input : result.steps.back().inputs) input.step = place[input.step];
  }
  place.back() = result.steps.size();
  for (auto evaluation : program.evaluations) {
    evaluation.at = place[std::min(evaluation.at, program.steps.size())];
    for (auto& ref : evaluation.values) ref.step = place[ref.step];
    if (!evaluation.values.empty()) result.evaluations.push_back(std::move(evaluation));
  }
  return result;
}

Program with_leaves(const Program& program, std::size_t k) {
  Program result = program;
  const auto& outputs = program.steps[k].outputs;
  std::vector<Step> leaves;
  for (const auto& spec : outputs) {
    Step leaf;
    leaf.op = "leaf";
    const bool floating = is_floating(spec.dtype);
    leaf.leaf = {spec, floating ? Fill::smooth : Fill::integers, floating ? -1.0 : 0.0, 1};
    leaf.outputs = {spec};
    leaf.group = program.steps[k].group;
    leaves.push_back(std::move(leaf));
  }
  const auto shifted = [&](Ref ref) {
    if (ref.step == k) return Ref{k + ref.output, 0};
    if (ref.step > k) ref.step += outputs.size() - 1;
    return ref;
  };
  for (auto& step : result.steps)
    for (auto& input : step.inputs) input = shifted(input);
  for (auto& evaluation : result.evaluations) {
    std::erase_if(evaluation.values, [&](const Ref& ref) { return ref.step == k; });
    for (auto& ref : evaluation.values) ref = shifted(ref);
    if (evaluation.at > k) evaluation.at += outputs.size() - 1;
  }
  result.steps.erase(result.steps.begin() + static_cast<std::ptrdiff_t>(k));
  result.steps.insert(result.steps.begin() + static_cast<std::ptrdiff_t>(k), leaves.begin(), leaves.end());
  return result;
}

namespace {

/// The program with every reading of `from` reading `to` instead.
Program redirected(Program program, const Ref& from, const Ref& to) {
  for (auto& step : program.steps) std::replace(step.inputs.begin(), step.inputs.end(), from, to);
  for (auto& evaluation : program.evaluations)
    evaluation.values.erase(std::remove(evaluation.values.begin(), evaluation.values.end(), from), evaluation.values.end());
  return program;
}

/// All programs that are one move smaller.
std::vector<Program> smaller(const Program& program) {
  std::vector<Program> result;
  for (std::size_t e = 0; e < program.evaluations.size(); ++e) {
    if (program.evaluations.size() > 1) {
      auto less = program;
      less.evaluations.erase(less.evaluations.begin() + static_cast<std::ptrdiff_t>(e));
      result.push_back(std::move(less));
    }
    for (std::size_t v = 0; program.evaluations[e].values.size() > 1 && v < program.evaluations[e].values.size(); ++v) {
      auto less = program;
      less.evaluations[e].values.erase(less.evaluations[e].values.begin() + static_cast<std::ptrdiff_t>(v));
      result.push_back(std::move(less));
    }
  }
  // What a wanted value is made of in its place.
  for (std::size_t e = 0; e < program.evaluations.size(); ++e)
    for (std::size_t v = 0; v < program.evaluations[e].values.size(); ++v)
      for (const auto& input : program.steps[program.evaluations[e].values[v].step].inputs) {
        if (program.steps[input.step].is_leaf()) continue;
        auto less = program;
        less.evaluations[e].values[v] = input;
        result.push_back(std::move(less));
      }
  for (auto k = program.steps.size(); k-- > 0;) {
    const auto& step = program.steps[k];
    if (step.is_leaf()) continue;
    result.push_back(with_leaves(program, k));
    if (step.outputs.size() != 1) continue;
    for (const auto& input : step.inputs)
      if (program.spec(input) == step.outputs[0]) result.push_back(redirected(program, {k, 0}, input));
  }
  std::map<std::size_t, bool> groups;
  for (const auto& step : program.steps)
    if (step.group != 0) groups[step.group] = true;
  for (const auto& [group, present] : groups) {
    auto less = program;
    for (auto& step : less.steps)
      if (step.group == group) step.group = 0;
    result.push_back(std::move(less));
  }
  return result;
}

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& fails, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  program = without_unused(program);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& candidate : smaller(program)) {
      if (std::chrono::steady_clock::now() > end) return program;
      auto less = without_unused(candidate);
      if (less.evaluations.empty() || !fails(less)) continue;
      program = std::move(less);
      changed = true;
      break;
    }
  }
  return program;
}

}  // namespace clnet::fuzz

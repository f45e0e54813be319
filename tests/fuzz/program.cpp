#include "tests/fuzz/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/exec/collect/work.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/rounding.h"

namespace clnet::fuzz {

Array leaf_values(const Leaf& leaf, std::uint64_t seed) {
  Array result(leaf.spec.shape);
  Rng random(mix(seed));
  for (auto& value : result.values) {
    const double place = random.fraction();
    switch (leaf.fill) {
      case Fill::smooth: value = leaf.low + (leaf.high - leaf.low) * place; break;
      case Fill::grid: value = std::floor((leaf.low + (leaf.high - leaf.low) * place) * 4 + 0.5) / 4; break;
      case Fill::integers: value = leaf.low + std::floor((leaf.high - leaf.low + 1) * place); break;
    }
    value = rounded(value, leaf.spec.dtype);
  }
  return result;
}

Tensor leaf_tensor(const Array& values, Dtype dtype) {
  const auto bytes = to_storage(values, dtype);
  return Tensor::from_bytes(bytes.data(), bytes.size(), {values.shape, dtype});
}

Storage read_storage(const Tensors& tensors) {
  Storage result;
  for (const auto& tensor : tensors) {
    result.emplace_back(static_cast<std::size_t>(tensor.spec().bytes()));
    tensor.to_bytes(result.back().data(), result.back().size());
  }
  return result;
}

Followed follow(const Tensor& value, int times) {
  Array ones(value.shape());
  std::fill(ones.values.begin(), ones.values.end(), 1.0);
  Followed result{nn::Parameter(leaf_tensor(ones, value.dtype())), value, times, exec::value_of(value) != nullptr};
  for (int i = 0; i < times; ++i) result.slot.follow(value, [](const Tensor& now, const Tensor& x) { return now * 0.5 + x; });
  return result;
}

std::vector<Tensor> Built::results() const {
  auto result = wanted;
  for (const auto& each : followed) result.push_back(each.slot.value());
  return result;
}

namespace {

std::vector<Device>& spread() {
  static std::vector<Device> devices;
  return devices;
}

/// Gradients are those of the tensors themselves, not of copies.
bool stays(const Step& step) { return step.op == "gradients" || step.op == "detach" || step.op == "follow"; }

Tensors inputs_of(const Program& program, std::size_t k, const Built& built) {
  const auto& step = program.steps[k];
  Tensors result;
  for (const auto& input : step.inputs) result.push_back(built[input]);
  if (!spread().empty() && !stays(step))
    for (auto& input : result) input = copy_to(input, spread()[mix(program.seed + k, 1) % spread().size()]);
  return result;
}

void make(const Program& program, std::size_t k, std::uint64_t round, const Built* again, Built& built) {
  const auto& step = program.steps[k];
  if (!step.is_leaf()) {
    built.tensors[k] = step.make(inputs_of(program, k, built));
    if (step.op == "follow") built.followed.push_back(follow(built.tensors[k][0], step.times));
    if (step.op == "detach") built.detached.emplace_back(built.tensors[k][0], built[step.inputs[0]]);
    return;
  }
  if (again) {
    built.tensors[k] = again->tensors[k];
    built.leaves.push_back(again->leaves[built.leaves.size()]);
    return;
  }
  auto values = leaf_values(step.leaf, mix(program.seed + k, round));
  built.tensors[k] = {leaf_tensor(values, step.leaf.spec.dtype)};
  built.leaves.emplace_back(built.tensors[k][0], std::move(values));
}

void let_go(const Program& program, const std::vector<Ref>& wanted, Built& built) {
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    if (program.steps[k].is_leaf()) continue;
    for (std::size_t output = 0; output < built.tensors[k].size(); ++output)
      if (std::none_of(wanted.begin(), wanted.end(), [&](const Ref& ref) { return ref.step == k && ref.output == output; }))
        built.tensors[k][output] = {};
  }
}

}  // namespace

void spread_over(std::vector<Device> devices) { spread() = std::move(devices); }

Built build(const Program& program, std::uint64_t round, const Built* again) {
  manual_seed(program.seed + round);
  Built built;
  built.tensors.resize(program.steps.size());
  auto next = program.evaluations.begin();
  const auto evaluate_until = [&](std::size_t at) {
    for (; next != program.evaluations.end() && next->at <= at; ++next) {
      Tensors values;
      for (const auto& ref : next->values) values.push_back(built[ref]);
      if (program.lets_go && next->at == program.steps.size() && next + 1 == program.evaluations.end())
        let_go(program, next->values, built);
      eval(values);
      built.wanted.insert(built.wanted.end(), values.begin(), values.end());
    }
  };
  for (std::size_t k = 0; k < program.steps.size();) {
    evaluate_until(k);
    const auto group = program.steps[k].group;
    if (group == 0) {
      make(program, k++, round, again, built);
      continue;
    }
    checkpoint(std::function<Tensors()>([&] {
      Tensors results;
      for (; k < program.steps.size() && program.steps[k].group == group; ++k) {
        make(program, k, round, again, built);
        results.insert(results.end(), built.tensors[k].begin(), built.tensors[k].end());
      }
      return results;
    }));
  }
  evaluate_until(program.steps.size());
  return built;
}

namespace {

std::string_view dtype_name(Dtype dtype) { return dtype == Dtype::boolean ? "boolean" : to_string(dtype); }

std::string ref_text(const Program& program, const Ref& ref) {
  return program.steps[ref.step].outputs.size() == 1 ? fmt::format("v{}", ref.step)
                                                     : fmt::format("v{}[{}]", ref.step, ref.output);
}

/// The step's expression, with its inputs in place of $0, $1, ...
std::string expression(const Program& program, std::size_t k) {
  const auto& step = program.steps[k];
  if (step.is_leaf()) {
    constexpr std::string_view fills[] = {"smooth", "grid", "integers"};
    return fmt::format("leaf({{{}, Dtype::{}}}, Fill::{}, {}, {}, {}u)", to_code(step.leaf.spec.shape),
                       dtype_name(step.leaf.spec.dtype), fills[static_cast<std::size_t>(step.leaf.fill)], step.leaf.low,
                       step.leaf.high, mix(program.seed + k, 0));
  }
  std::string result;
  for (std::size_t i = 0; i < step.code.size(); ++i) {
    if (step.code[i] != '$') {
      result += step.code[i];
      continue;
    }
    std::size_t index = 0;
    while (i + 1 < step.code.size() && std::isdigit(static_cast<unsigned char>(step.code[i + 1])))
      index = index * 10 + static_cast<std::size_t>(step.code[++i] - '0');
    result += ref_text(program, step.inputs.at(index));
  }
  return result;
}

}  // namespace

std::string to_code(const Shape& shape) { return fmt::format("Shape{{{}}}", fmt::join(shape.extents(), ", ")); }

std::string to_code(const Program& program) {
  std::string text = fmt::format("// seed {}\nmanual_seed({}u);\n", program.seed, program.seed);
  std::size_t group = 0;
  auto next = program.evaluations.begin();
  const auto evaluate_until = [&](std::size_t at) {
    for (; next != program.evaluations.end() && next->at <= at; ++next) {
      std::vector<std::string> names;
      for (const auto& ref : next->values) names.push_back(ref_text(program, ref));
      text += fmt::format("eval({{{}}});\n", fmt::join(names, ", "));
    }
  };
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const auto& step = program.steps[k];
    if (step.group == 0 || step.group != group) evaluate_until(k);
    if (step.group != group) {
      if (group != 0) text += "// end of checkpoint()\n";
      if (step.group != 0) text += "// the steps of one checkpoint():\n";
      group = step.group;
    }
    text += fmt::format("const auto v{} = {};", k, expression(program, k));
    std::vector<std::string> specs;
    for (const auto& spec : step.outputs) specs.push_back(to_string(spec));
    text += fmt::format("  // {}\n", fmt::join(specs, ", "));
  }
  evaluate_until(program.steps.size());
  return text;
}

}  // namespace clnet::fuzz

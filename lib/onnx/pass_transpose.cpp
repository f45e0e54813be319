// Transposes that cancel each other, as converters between layouts of images leave them.
#include <algorithm>
#include <array>
#include <string_view>

#include "lib/onnx/passes.h"

namespace clnet::onnx {
namespace {

/// Operators of one tensor, element by element; further inputs are single numbers.
bool is_elementwise(const Uses& uses, std::size_t index) {
  constexpr std::array<std::string_view, 24> names{"Abs",       "Cast",  "Ceil",    "Clip",        "Elu",        "Erf",
                                                   "Exp",       "Floor", "Gelu",    "HardSigmoid", "HardSwish",  "Identity",
                                                   "LeakyRelu", "Log",   "Mish",    "Neg",         "Reciprocal", "Relu",
                                                   "Round",     "Selu",  "Sigmoid", "Softplus",    "Sqrt",       "Tanh"};
  return uses.at(index).outputs.size() == 1 &&
         std::any_of(names.begin(), names.end(), [&](auto name) { return uses.is(index, name); });
}

/// Whether the second permutation undoes the first.
bool cancel(const Instruction& first, const Instruction& second) {
  const auto a = integers_of(first, "perm"), b = integers_of(second, "perm");
  if (!a || !b || a->size() != b->size()) return false;
  for (std::size_t i = 0; i < b->size(); ++i) {
    const auto from = (*b)[i];
    if (from < 0 || from >= static_cast<std::int64_t>(a->size()) ||
        (*a)[static_cast<std::size_t>(from)] != static_cast<std::int64_t>(i))
      return false;
  }
  return true;
}

/// Takes out pairs that share no instruction. Whether there was one.
bool cancel_apart(Program& program) {
  const Uses uses(program);
  std::vector<bool> touched(program.instructions.size()), gone(program.instructions.size());
  bool found = false;
  for (std::size_t last = 0; last < program.instructions.size(); ++last) {
    const auto& outputs = uses.at(last).outputs;
    if (!uses.is(last, "Transpose") || uses.input(last, 0) < 0 || outputs.size() != 1 || outputs[0] < 0) continue;
    // From the last transpose back to the first.
    std::vector<std::size_t> chain{last};
    auto made = uses.maker(uses.input(last, 0));
    while (made && uses.readers(uses.input(chain.back(), 0)) == 1 && is_elementwise(uses, *made)) {
      chain.push_back(*made);
      made = uses.maker(uses.input(*made, 0));
    }
    if (!made || !uses.is(*made, "Transpose") || uses.input(*made, 0) < 0 ||
        !cancel(program.instructions[*made], program.instructions[last]))
      continue;
    if (touched[*made] || std::any_of(chain.begin(), chain.end(), [&](auto index) { return touched[index]; })) continue;
    touched[*made] = found = true;
    for (const auto index : chain) touched[index] = true;
    program.instructions[chain.back()].inputs[0] = program.instructions[*made].inputs[0];
    auto& transpose = program.instructions[last];
    if (chain.size() == 1) {
      transpose.op = find_operator("", "Identity", transpose.opset);
    } else {
      program.instructions[chain[1]].outputs[0] = transpose.outputs[0];
      gone[last] = true;
    }
  }
  std::vector<Instruction> kept;
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (!gone[i]) kept.push_back(std::move(program.instructions[i]));
  program.instructions = std::move(kept);
  return found;
}

}  // namespace

void cancel_transposes(Program& program) {
  constexpr int most_rounds = 8;
  for (int round = 0; round < most_rounds && cancel_apart(program); ++round) continue;
  // Those that nobody reads any more.
  const Uses uses(program);
  std::vector<Instruction> kept;
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (!uses.is(i, "Transpose") ||
        std::any_of(uses.at(i).outputs.begin(), uses.at(i).outputs.end(), [&](auto slot) { return uses.readers(slot) > 0; }))
      kept.push_back(program.instructions[i]);
  program.instructions = std::move(kept);
}

}  // namespace clnet::onnx

#include "lib/onnx/passes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace clnet::onnx {

Uses::Uses(const Program& program)
    : program_(program),
      makers_(static_cast<std::size_t>(program.slots), -1),
      readers_(static_cast<std::size_t>(program.slots)),
      fixed_(static_cast<std::size_t>(program.slots)) {
  const auto read = [&](Slot slot) {
    if (slot >= 0) ++readers_[static_cast<std::size_t>(slot)];
  };
  for (const auto& [slot, data] : program.initializers) fixed_[static_cast<std::size_t>(slot)] = true;
  for (const auto slot : program.inputs) fixed_[static_cast<std::size_t>(slot)] = false;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const auto& instruction = at(i);
    for (const auto slot : instruction.inputs) read(slot);
    for (const auto& body : instruction.graphs)
      for (const auto& [outside, inside] : body->captures) read(outside);
    const bool fixed = is(i, "Shape") || is(i, "Size") ||
                       (instruction.op && !instruction.op->varies && instruction.graphs.empty() &&
                        std::all_of(instruction.inputs.begin(), instruction.inputs.end(),
                                    [&](auto slot) { return slot < 0 || is_fixed(slot); }));
    for (const auto slot : instruction.outputs)
      if (slot >= 0) {
        makers_[static_cast<std::size_t>(slot)] = static_cast<int>(i);
        fixed_[static_cast<std::size_t>(slot)] = fixed;
      }
  }
  for (const auto slot : program.outputs) read(slot);
}

bool Uses::is(std::size_t index, std::string_view op) const {
  const auto& instruction = at(index);
  return instruction.op && !instruction.fusion && instruction.op->domain.empty() && instruction.op->name == op;
}

std::optional<std::size_t> Uses::maker(Slot slot) const {
  const auto index = slot < 0 ? -1 : makers_[static_cast<std::size_t>(slot)];
  return index < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(index));
}

std::optional<std::size_t> Uses::maker(Slot slot, std::string_view op) const {
  const auto index = maker(slot);
  return index && is(*index, op) ? index : std::nullopt;
}

std::optional<std::pair<Slot, Slot>> Uses::with_fixed(std::size_t index) const {
  const auto& inputs = at(index).inputs;
  if (inputs.size() != 2 || inputs[0] < 0 || inputs[1] < 0 || is_fixed(inputs[0]) == is_fixed(inputs[1])) return std::nullopt;
  return is_fixed(inputs[1]) ? std::pair(inputs[0], inputs[1]) : std::pair(inputs[1], inputs[0]);
}

std::vector<Slot> Uses::factors(std::size_t index, std::vector<std::size_t>& parts) const {
  parts.push_back(index);
  std::vector<Slot> out;
  for (const auto slot : at(index).inputs) {
    const auto inner = maker(slot, "Mul");
    if (inner && readers(slot) == 1 && parts.size() < 16) {
      const auto more = factors(*inner, parts);
      out.insert(out.end(), more.begin(), more.end());
    } else {
      out.push_back(slot);
    }
  }
  return out;
}

bool Uses::is_closed(const std::vector<std::size_t>& parts, std::size_t last) const {
  std::map<Slot, std::size_t> reads;
  for (const auto part : parts)
    for (const auto slot : at(part).inputs) ++reads[slot];
  return std::all_of(parts.begin(), parts.end(), [&](auto part) {
    return part == last || std::all_of(at(part).outputs.begin(), at(part).outputs.end(),
                                       [&](auto slot) { return slot < 0 || readers(slot) == reads[slot]; });
  });
}

std::optional<std::vector<std::int64_t>> integers_of(const Instruction& instruction, std::string_view attribute) {
  for (const auto& each : instruction.node->attributes)
    if (each.name == attribute && each.reference.empty()) return each.integers;
  return std::nullopt;
}

std::optional<double> number_of(const Call& call, std::size_t input) {
  const auto& value = call.in(input);
  if (!value.host() || value.shape().numel() != 1) return std::nullopt;
  return call.number(input);
}

bool is_number(const Call& call, std::size_t input, double value) {
  const auto found = number_of(call, input);
  return found && std::abs(*found - value) <= 1e-4 * std::abs(value);
}

namespace {

/// The graph with each match as one instruction, at the place of its last part.
void fuse_matches(Program& program) {
  const Uses uses(program);
  std::set<std::size_t> taken;
  std::map<std::size_t, Match> by_last;
  for (const auto match : {match_layer_norm, match_attention, match_gelu})
    for (std::size_t i = program.instructions.size(); i-- > 0;) {
      if (taken.contains(i) || uses.at(i).outputs.size() != 1 || uses.at(i).outputs[0] < 0) continue;
      auto found = match(uses, i);
      if (!found) continue;
      auto& parts = found->parts;
      std::sort(parts.begin(), parts.end());
      parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
      if (std::any_of(parts.begin(), parts.end(), [&](auto part) { return taken.contains(part); }) || !uses.is_closed(parts, i))
        continue;
      taken.insert(parts.begin(), parts.end());
      by_last.emplace(i, std::move(*found));
    }
  std::vector<Instruction> kept;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (const auto found = by_last.find(i); found != by_last.end()) {
      auto fusion = std::make_shared<Fusion>();
      fusion->run = std::move(found->second.run);
      for (const auto part : found->second.parts) {
        fusion->parts.push_back(program.instructions[part]);
        fusion->parts.back().ends.clear();
      }
      Instruction fused;
      const auto& last = program.instructions[i];
      fused.node = last.node;
      fused.opset = last.opset;
      fused.place = last.place;
      fused.op = last.op;
      fused.inputs = std::move(found->second.inputs);
      fused.outputs = last.outputs;
      fused.fusion = std::move(fusion);
      kept.push_back(std::move(fused));
    } else if (!taken.contains(i)) {
      kept.push_back(program.instructions[i]);
    }
  }
  program.instructions = std::move(kept);
}

/// Marks instructions whose results are the same in each run: they read constants and initializers only.
void mark_kept(Program& program) {
  std::set<Slot> same;
  for (const auto& [slot, data] : program.initializers) same.insert(slot);
  for (const auto& [slot, data] : program.sparse_initializers) same.insert(slot);
  for (const auto slot : program.inputs) same.erase(slot);
  for (auto& instruction : program.instructions) {
    instruction.kept = instruction.op && !instruction.op->varies && instruction.graphs.empty() && !instruction.fusion &&
                       std::all_of(instruction.inputs.begin(), instruction.inputs.end(),
                                   [&](auto slot) { return slot < 0 || same.contains(slot); });
    if (instruction.kept) same.insert(instruction.outputs.begin(), instruction.outputs.end());
  }
}

class Optimizer {
 public:
  std::shared_ptr<const Program> of(const std::shared_ptr<const Program>& program, bool is_function) {
    auto& known = known_[program.get()];
    if (known) return known;
    auto out = std::make_shared<Program>(*program);
    cancel_transposes(*out);
    fuse_matches(*out);
    // An attribute may be another one at each call of a function.
    if (!is_function) mark_kept(*out);
    for (auto& instruction : out->instructions) {
      if (instruction.function) instruction.function = of(instruction.function, true);
      for (auto& body : instruction.graphs) body = of(body, is_function);
    }
    find_ends(*out);
    return known_[program.get()] = std::move(out);
  }

 private:
  std::map<const Program*, std::shared_ptr<const Program>> known_;
};

}  // namespace

std::shared_ptr<const Program> optimized(const std::shared_ptr<const Program>& program) { return Optimizer().of(program, false); }

}  // namespace clnet::onnx

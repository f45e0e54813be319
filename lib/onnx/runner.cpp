#include "lib/onnx/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/debug.h"
#include "lib/base/input_file.h"
#include "lib/base/readable.h"
#include "lib/onnx/fold.h"

namespace clnet::onnx {
namespace {

constexpr int deepest_run = 200;  // graphs that run within each other

/// Small enough for the host: shapes, axes, numbers.
constexpr std::int64_t most_on_host = 4096;

}  // namespace

template <class Data>
RunValue Constants::read(const Data& data) {
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(&data); known != known_.end()) return known->second;
  const auto device = Device::current();
  auto here = std::find_if(large_.begin(), large_.end(), [&](const auto& each) { return each.first == device; });
  if (here != large_.end())
    if (const auto known = here->second.find(&data); known != here->second.end()) return known->second;
  auto host = content_of(data, file_.folder, file_.name);
  if (host.type == ElementType::f64 && f64_as_f32_) host = HostTensor::of(ElementType::f32, host.shape, host.numbers());
  if (host.numel() <= most_on_host) return known_[&data] = RunValue(std::move(host));
  if (here == large_.end()) here = large_.insert(large_.end(), {device, {}});
  return here->second[&data] = RunValue(to_tensor(host), host.type, true);
}
RunValue Constants::of(const TensorData& data) { return read(data); }
RunValue Constants::of(const SparseData& data) { return read(data); }

std::vector<RunValue> Runner::run(const Program& program, std::span<const RunValue> inputs) {
  Frame frame{&program, std::vector<RunValue>(static_cast<std::size_t>(program.slots)), {}, nullptr};
  for (std::size_t i = 0; i < inputs.size() && i < program.inputs.size(); ++i)
    frame.values[static_cast<std::size_t>(program.inputs[i])] = inputs[i];
  return run(frame);
}

std::vector<RunValue> Runner::run_body(const Program& body, std::span<const RunValue> inputs) {
  Frame frame{&body, std::vector<RunValue>(static_cast<std::size_t>(body.slots)), {}, frame_};
  for (const auto& [outside, inside] : body.captures)
    frame.values[static_cast<std::size_t>(inside)] = frame_->values[static_cast<std::size_t>(outside)];
  for (std::size_t i = 0; i < inputs.size() && i < body.inputs.size(); ++i)
    frame.values[static_cast<std::size_t>(body.inputs[i])] = inputs[i];
  return run(frame);
}

std::vector<RunValue> Runner::run(Frame& frame) {
  if (depth_ >= deepest_run) throw Error(fmt::format("onnx: more than {} graphs run within each other", deepest_run));
  const Running running(*this, frame);
  const auto& program = *frame.program;
  const auto initialize = [&](Slot slot, const auto& make) {
    auto& value = frame.values[static_cast<std::size_t>(slot)];
    if (!value.is_there()) value = make();
  };
  for (const auto& [slot, data] : program.initializers)
    initialize(slot, [&, which = data] {
      auto value = held(*which);
      return value.is_there() ? value : constants_.of(*which);
    });
  for (const auto& [slot, data] : program.sparse_initializers)
    initialize(slot, [&, which = data] { return constants_.of(*which); });
  for (const auto& instruction : program.instructions) run(frame, instruction);
  std::vector<RunValue> outputs;
  for (const auto slot : program.outputs) outputs.push_back(frame.values[static_cast<std::size_t>(slot)]);
  return outputs;
}

void Runner::run(Frame& frame, const Instruction& instruction) {
  options_.check();
  const auto& node = *instruction.node;
  std::vector<RunValue> inputs;
  for (const auto slot : instruction.inputs)
    inputs.push_back(slot < 0 ? RunValue{} : frame.values[static_cast<std::size_t>(slot)]);
  std::vector<RunValue> outputs;
  try {
    if (instruction.function) {
      outputs = run_function(instruction, inputs);
    } else if (!instruction.op) {
      throw Unsupported(fmt::format("operator {} of set {} is not supported", in_quotes(node.op_type), instruction.opset));
    } else {
      const Call call(*this, instruction, inputs);
      const bool constant =
          instruction.graphs.empty() && !instruction.op->varies &&
          std::all_of(inputs.begin(), inputs.end(), [](const auto& input) { return !input.is_there() || input.is_constant(); });
      auto folded = constant ? fold(call) : std::nullopt;
      outputs = folded ? std::move(*folded) : instruction.op->run(call);
      if (constant)
        for (auto& output : outputs)
          if (!output.parameter()) output.set_constant();
    }
  } catch (Error& error) {
    error.place(node.name.empty()
                    ? fmt::format("{} of opset {}", readable(node.op_type), instruction.opset)
                    : fmt::format("{} ({} of opset {})", readable(node.name), readable(node.op_type), instruction.opset));
    throw;
  }
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    const auto slot = instruction.outputs[i];
    if (slot >= 0 && i < outputs.size()) frame.values[static_cast<std::size_t>(slot)] = std::move(outputs[i]);
  }
  for (const auto slot : instruction.ends) frame.values[static_cast<std::size_t>(slot)] = {};
}

std::vector<RunValue> Runner::run_function(const Instruction& instruction, std::span<const RunValue> inputs) {
  const auto& body = *instruction.function;
  Frame inner{&body, std::vector<RunValue>(static_cast<std::size_t>(body.slots)), {}, nullptr};
  for (std::size_t i = 0; i < inputs.size() && i < body.inputs.size(); ++i)
    inner.values[static_cast<std::size_t>(body.inputs[i])] = inputs[i];
  for (const auto& attribute : instruction.definition->default_attributes) inner.attributes[attribute.name] = &attribute;
  for (const auto& attribute : instruction.node->attributes) {
    const auto* given = &attribute;
    if (!attribute.reference.empty()) given = attribute_of_function(attribute.reference);
    if (given) inner.attributes[attribute.name] = given;
  }
  return run(inner);
}

const Attribute* Runner::attribute_of_function(std::string_view name) const {
  for (const auto* frame = frame_; frame; frame = frame->outer)
    if (const auto found = frame->attributes.find(name); found != frame->attributes.end()) return found->second;
  return nullptr;
}

}  // namespace clnet::onnx

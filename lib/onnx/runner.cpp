#include "lib/onnx/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/input_file.h"
#include "lib/graph/autocast.h"
#include "lib/graph/capture.h"
#include "lib/graph/scope.h"
#include "lib/onnx/fold.h"
#include "lib/onnx/multiply_adds.h"
#include "lib/onnx/passes.h"

namespace clnet::onnx {
namespace {

constexpr int deepest_run = 200;  // graphs that run within each other

/// Small enough for the host: shapes, axes, numbers.
constexpr std::int64_t most_on_host = 4096;

constexpr std::uint64_t most_kept = std::uint64_t{1} << 28;  // bytes of results of constants

void evaluate(const std::vector<RunValue>& values) {
  std::vector<Tensor> pending;
  for (const auto& value : values)
    if (!value.is_sequence() && value.is_there() && !value.host()) pending.push_back(value.tensor());
  if (!pending.empty()) eval(pending);
}

}  // namespace

template <class Data>
RunValue Constants::read(const Data& data) {
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(&data); known != known_.end()) return known->second;
  auto& here = here_now();
  if (const auto known = here.large.find(&data); known != here.large.end()) return known->second;
  auto host = content_of(data, file_.folder, file_.name);
  if (host.type == ElementType::f64 && f64_as_f32_) host = HostTensor::of(ElementType::f32, host.shape, host.numbers());
  if (host.numel() <= most_on_host) return known_[&data] = RunValue(std::move(host));
  return here.large[&data] = RunValue(to_tensor(host), host.type, true);
}

Constants::OnDevice& Constants::here_now() {
  const auto device = Device::current();
  const auto here = std::find_if(devices_.begin(), devices_.end(), [&](const auto& each) { return each.device == device; });
  return here != devices_.end() ? *here : devices_.emplace_back(OnDevice{device, {}, {}});
}

RunValue Constants::of(const TensorData& data) { return read(data); }
RunValue Constants::of(const SparseData& data) { return read(data); }

std::vector<RunValue> Constants::of(const Instruction& instruction, const std::function<std::vector<RunValue>()>& run) {
  {
    const std::lock_guard lock(mutex_);
    const auto& results = here_now().results;
    if (const auto found = results.find(&instruction); found != results.end()) return found->second;
  }
  // compile() would take the values for parts of its graph.
  const Capturing none(nullptr);
  auto outputs = run();
  std::uint64_t bytes = 0;
  for (const auto& output : outputs)
    if (!output.is_sequence() && output.is_there()) bytes += static_cast<std::uint64_t>(output.shape().numel()) * 8;
  {
    const std::lock_guard lock(mutex_);
    if (kept_ + bytes > most_kept) return outputs;
  }
  evaluate(outputs);
  const std::lock_guard lock(mutex_);
  // Another thread may have kept its own meanwhile.
  const auto [kept, is_new] = here_now().results.try_emplace(&instruction, std::move(outputs));
  if (is_new) kept_ += bytes;
  return kept->second;
}

std::vector<RunValue> WeightValues::of(const Instruction& instruction, std::size_t key, const std::vector<RunValue>& sources,
                                       const Make& make) {
  auto* const capture = capturing();
  // compile() would take the values for parts of its graph.
  const Capturing none(nullptr);
  std::vector<RunValue> given;
  std::vector<Tensor> tensors;
  for (const auto& source : sources) {
    given.push_back(source.parameter() ? RunValue(*source.parameter(), source.type()) : source);
    tensors.push_back(given.back().is_there() ? given.back().tensor() : Tensor{});
    if (!capture || !source.parameter()) continue;
    // Its graph holds as long as the weight is untrained and the same.
    capture->conditions.emplace_back([source, tensor = tensors.back()] {
      const Capturing nothing(nullptr);
      return source.is_untrained() && source.parameter()->value().same(tensor);
    });
  }
  const auto same = [](const Tensor& a, const Tensor& b) { return a.defined() ? b.defined() && a.same(b) : !b.defined(); };
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find({&instruction, key});
    if (found != entries_.end() &&
        std::equal(tensors.begin(), tensors.end(), found->second.sources.begin(), found->second.sources.end(), same))
      return found->second.results;
  }
  auto results = make(given);
  evaluate(results);
  const std::lock_guard lock(mutex_);
  entries_[{&instruction, key}] = {std::move(tensors), results};
  return results;
}

// What is kept has the types that the nodes give: a scope that casts has others.
Runner::Runner(const Held& held, Constants& constants, RunOptions options)
    : held_(held), constants_(constants), options_(std::move(options)), keeps_(!autocasting()) {
  if (!keeps_) options_.weights = nullptr;
}

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

bool Runner::makes_weights(const Instruction& instruction, const std::vector<RunValue>& inputs) const {
  return options_.weights && instruction.graphs.empty() && !instruction.op->varies && instruction.op->name != "Identity" &&
         instruction.outputs.size() == 1 &&
         std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.is_untrained(); }) &&
         std::all_of(inputs.begin(), inputs.end(), [](const auto& input) {
           return !input.is_there() || (!input.is_sequence() && (input.is_constant() || input.is_untrained()));
         });
}

bool Runner::run_fused(Frame& frame, const Instruction& instruction) {
  std::vector<RunValue> inputs;
  for (const auto slot : instruction.inputs)
    inputs.push_back(slot < 0 ? RunValue{} : frame.values[static_cast<std::size_t>(slot)]);
  std::optional<Outputs> outputs;
  try {
    outputs = instruction.fusion->run(Call(*this, instruction, inputs));
  } catch (const Error&) {
    return false;  // the parts tell which node it is
  }
  if (!outputs) return false;
  frame.values[static_cast<std::size_t>(instruction.outputs[0])] = std::move((*outputs)[0]);
  for (const auto slot : instruction.ends) frame.values[static_cast<std::size_t>(slot)] = {};
  return true;
}

void Runner::run(Frame& frame, const Instruction& instruction) {
  options_.check();
  const auto& node = *instruction.node;
  // Traces and memory reports tell the node.
  const InScope scope(instruction.place);
  if (instruction.fusion && !run_fused(frame, instruction)) {
    for (const auto& part : instruction.fusion->parts) run(frame, part);
    for (const auto slot : instruction.ends) frame.values[static_cast<std::size_t>(slot)] = {};
  }
  if (instruction.fusion) return;
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
      const auto compute = [&] {
        auto results = constant ? fold(call) : std::nullopt;
        if (!results) results = instruction.op->run(call);
        if (constant)
          for (auto& output : *results)
            if (!output.parameter()) output.set_constant();
        return std::move(*results);
      };
      // A Constant node may give a parameter.
      if (constant && keeps_ && instruction.kept && instruction.op->name != "Constant")
        outputs = constants_.of(instruction, compute);
      else if (makes_weights(instruction, inputs))
        outputs = options_.weights->of(instruction, 0, inputs, [&](const std::vector<RunValue>& weights) {
          return instruction.op->run(Call(*this, instruction, weights));
        });
      else
        outputs = compute();
    }
  } catch (Error& error) {
    error.place(instruction.place);
    throw;
  }
  if (options_.multiply_adds && !outputs.empty()) *options_.multiply_adds += multiply_adds_of(instruction, inputs, outputs[0]);
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    const auto slot = instruction.outputs[i];
    if (slot >= 0 && i < outputs.size()) frame.values[static_cast<std::size_t>(slot)] = std::move(outputs[i]);
  }
  for (const auto slot : instruction.ends) frame.values[static_cast<std::size_t>(slot)] = {};
}

std::vector<RunValue> Runner::run_function(const Instruction& instruction, std::span<const RunValue> inputs) {
  const auto& body = *instruction.function;
  // The same instruction may have other attributes at the next call.
  auto* const weights = std::exchange(options_.weights, nullptr);
  Frame inner{&body, std::vector<RunValue>(static_cast<std::size_t>(body.slots)), {}, nullptr};
  for (std::size_t i = 0; i < inputs.size() && i < body.inputs.size(); ++i)
    inner.values[static_cast<std::size_t>(body.inputs[i])] = inputs[i];
  for (const auto& attribute : instruction.definition->default_attributes) inner.attributes[attribute.name] = &attribute;
  for (const auto& attribute : instruction.node->attributes) {
    const auto* given = &attribute;
    if (!attribute.reference.empty()) given = attribute_of_function(attribute.reference);
    if (given) inner.attributes[attribute.name] = given;
  }
  auto outputs = run(inner);
  options_.weights = weights;
  return outputs;
}

const Attribute* Runner::attribute_of_function(std::string_view name) const {
  for (const auto* frame = frame_; frame; frame = frame->outer)
    if (const auto found = frame->attributes.find(name); found != frame->attributes.end()) return found->second;
  return nullptr;
}

}  // namespace clnet::onnx

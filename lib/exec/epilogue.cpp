#include "lib/exec/epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/exec/expression.h"

namespace clnet::exec {

namespace {

std::size_t index_of(const ElementwiseKernel& kernel, const Tensor& head) {
  const auto found =
      std::find_if(kernel.buffers.begin(), kernel.buffers.end(), [&](const Tensor& buffer) { return buffer.same(head); });
  return static_cast<std::size_t>(found - kernel.buffers.begin());
}

/// The strides of the channel's number over the loops; nothing when a loop walks through channels and something else.
std::optional<Strides> channel_strides(const std::vector<std::int64_t>& loops, std::int64_t channels, std::int64_t inner) {
  const auto linear = linear_strides(loops);
  Strides result(loops.size(), 0);
  for (std::size_t d = 0; d < loops.size(); ++d) {
    const auto end = linear[d] * loops[d];
    if (end <= inner || linear[d] >= inner * channels) continue;
    if (linear[d] % inner != 0 || end > inner * channels) return std::nullopt;
    result[d] = linear[d] / inner;
  }
  return result;
}

}  // namespace

FusedEpilogue::FusedEpilogue(const ElementwiseKernel& kernel, const Tensor& head, std::vector<Ref> inputs)
    : kernel_(kernel), head_(index_of(kernel, head)), inputs_(std::move(inputs)) {}

bool FusedEpilogue::possible(const ElementwiseKernel& kernel, const Tensor& head) {
  const auto index = index_of(kernel, head);
  const bool own_places = std::all_of(kernel.loads.begin(), kernel.loads.end(),
                                      [&](const auto& load) { return load.buffer != index || load.at.linear; });
  const bool no_inner_index = std::all_of(kernel.steps.begin(), kernel.steps.end(), [](const auto& step) {
    return step.at.linear || !uses_index(expression_of(*step.node));
  });
  return kernel.outputs.size() == 1 && own_places && no_inner_index &&
         kernel.steps[kernel.outputs[0]].node->outputs[0].dtype == head.dtype();
}

bool FusedEpilogue::join(Launch& launch, std::int64_t channels, std::int64_t inner) {
  const auto by_channel = channel_strides(kernel_.loops, channels, inner);
  std::vector<std::string> places;
  for (const auto& load : kernel_.loads) {
    const bool fixed = std::all_of(load.at.strides.begin(), load.at.strides.end(), [](auto stride) { return stride == 0; });
    if (load.at.linear)
      places.emplace_back("i");
    else if (fixed)
      places.emplace_back("0");
    else if (by_channel && load.at.strides == *by_channel)
      places.emplace_back("channel");
    else
      return false;
  }

  // A launch may store a part of the output, from an element on. Others (a product on the way to something else) are not meant.
  const auto& all = launch.arguments();
  const auto target = std::find_if(all.begin(), all.end(), [&](const Arg& argument) {
    const auto* buffer = std::get_if<BufferArg>(&argument);
    return buffer && buffer->writes && buffer->ref.value == inputs_[head_].value;
  });
  if (target == all.end()) return false;
  const auto start = std::get<BufferArg>(*target).ref.offset;

  std::string parameters, arguments;
  const auto pass = [&](const std::string& parameter, const std::string& argument) {
    parameters += ", " + parameter;
    arguments += ", " + argument;
  };
  for (std::size_t k = 0; k < kernel_.buffers.size(); ++k) {
    if (k == head_) continue;
    const auto name = fmt::format("e{}", k);
    launch.in(name, inputs_[k]);
    // not restrict: where functions are inlined but not optimised, that leaves intrinsics which Oclgrind does not know
    pass(fmt::format("IN_SHARED({})", name), fmt::format("{0}_base, {0}_offset", name));
  }
  for (std::size_t k = 0; k < kernel_.scalars.size(); ++k) {
    const auto name = fmt::format("es{}", k);
    launch.scalar(name, inputs_[kernel_.buffers.size() + k]);
    pass(fmt::format("SCALAR({})", name), name);
  }

  launch.arg(start);
  pass("const int e_start", "e_start");

  using From = ElementwiseKernel::Operand::From;
  const auto& result = kernel_.steps[kernel_.outputs[0]];
  const auto dtype = result.node->outputs[0].dtype;
  std::string body = fmt::format("const int i = e_start + index; \\\n  const float raw = {};", converted(dtype, "value"));
  for (std::size_t k = 0; k < kernel_.loads.size(); ++k) {
    const auto buffer = kernel_.loads[k].buffer;
    if (buffer != head_) body += fmt::format(" \\\n  const VALUE(e{0}) a{1} = LOAD(e{0}, {2});", buffer, k, places[k]);
  }
  std::size_t parameter = 0;
  for (std::size_t k = 0; k < kernel_.steps.size(); ++k) {
    const auto& step = kernel_.steps[k];
    const auto first = parameter;
    for (float value : step.node->op->parameters()) {
      launch.arg_float(value);
      pass(fmt::format("const float ep{}", parameter), fmt::format("ep{}", parameter));
      ++parameter;
    }
    const auto expression = rename(expression_of(*step.node), [&](std::string_view name) -> std::string {
      if (name == "i") return "i";
      if (name[0] == 'p') return fmt::format("ep{}", first + static_cast<std::size_t>(name[1] - '0'));
      const auto& operand = step.operands.at(static_cast<std::size_t>(name[0] - 'a'));
      switch (operand.from) {
        case From::load: return kernel_.loads[operand.index].buffer == head_ ? "raw" : fmt::format("a{}", operand.index);
        case From::scalar: return fmt::format("es{}", operand.index);
        default: return fmt::format("v{}", operand.index);
      }
    });
    const auto type = step.node->outputs[0].dtype;
    body += fmt::format(" \\\n  const {} v{} = {}; /* {} */", value_type(type), k, converted(type, expression),
                        step.node->op->name());
  }
  body += fmt::format(" \\\n  return v{};", kernel_.outputs[0]);
  launch.define("EPILOGUE_BODY", body).define("EPILOGUE_PARAMETERS", parameters).define("EPILOGUE_ARGUMENTS", arguments);
  return true;
}

}  // namespace clnet::exec

#include "lib/exec/fuse/epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/exec/fuse/attachment.h"
#include "lib/exec/fuse/expression.h"

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
  // Every element of the head at its own place, and none of its others or of its other results, which may not be written yet.
  const bool own_places = std::all_of(kernel.loads.begin(), kernel.loads.end(), [&](const auto& load) {
    return load.buffer == index ? load.at.linear : node_of(root_of(kernel.buffers[load.buffer]).tensor) != node_of(head);
  });
  const bool no_inner_index = std::all_of(kernel.statements.begin(), kernel.statements.end(), [](const auto& statement) {
    return statement.at.linear || !uses_index(statement.expression.text);
  });
  return kernel.outputs.size() == 1 && own_places && no_inner_index &&
         kernel.statements[kernel.outputs[0]].node->outputs[0].dtype == head.dtype();
}

std::optional<std::vector<std::string>> FusedEpilogue::places(std::int64_t channels, std::int64_t inner) const {
  const auto by_channel = channel_strides(kernel_.loops, channels, inner);
  std::vector<std::string> result;
  for (const auto& load : kernel_.loads) {
    if (load.buffer == head_)
      result.emplace_back();
    else if (load.at.linear)
      result.emplace_back("i");
    else if (load.at.fixed())
      result.emplace_back("0");
    else if (by_channel && load.at.first == 0 && load.at.strides == *by_channel)
      result.emplace_back("channel");
    else
      return std::nullopt;
  }
  return result;
}

bool FusedEpilogue::only_by_channel(std::int64_t channels, std::int64_t inner) const {
  const auto found = places(channels, inner);
  const bool indexed = std::any_of(kernel_.statements.begin(), kernel_.statements.end(),
                                   [](const auto& statement) { return uses_index(statement.expression.text); });
  return found && !indexed && std::find(found->begin(), found->end(), "i") == found->end();
}

void FusedEpilogue::join_inner(Launch& launch, std::string_view name, std::int64_t channels, std::int64_t inner) {
  Attachment attachment(kernel_, inputs_, launch, fmt::format("{}_", name));
  attachment.pass_inputs(head_);
  const auto dtype = kernel_.statements[kernel_.outputs[0]].node->outputs[0].dtype;
  const auto body =
      fmt::format("const float raw = {};", converted(dtype, "value")) + attachment.body(places(channels, inner).value(), "raw");
  launch.define(fmt::format("{}_BODY", name), body)
      .define(fmt::format("{}_PARAMETERS", name), attachment.parameters())
      .define(fmt::format("{}_ARGUMENTS", name), attachment.arguments());
}

bool FusedEpilogue::join(Launch& launch, std::int64_t channels, std::int64_t inner) {
  const auto found = places(channels, inner);
  if (!found) return false;

  // A launch may store a part of the output, from an element on. Others (a product on the way to something else) are not meant.
  const auto& all = launch.arguments();
  const auto target = std::find_if(all.begin(), all.end(), [&](const Arg& argument) {
    const auto* buffer = std::get_if<BufferArg>(&argument);
    return buffer && buffer->writes && buffer->ref.value == inputs_[head_].value;
  });
  if (target == all.end()) return false;
  const auto start = std::get<BufferArg>(*target).ref.offset;

  Attachment attachment(kernel_, inputs_, launch, "e");
  attachment.pass_inputs(head_);
  launch.arg(start);
  attachment.pass("const int e_start", "e_start");
  const auto dtype = kernel_.statements[kernel_.outputs[0]].node->outputs[0].dtype;
  const auto body = fmt::format("const int i = e_start + index; \\\n  const float raw = {};", converted(dtype, "value")) +
                    attachment.body(*found, "raw");
  launch.define("EPILOGUE_BODY", body)
      .define("EPILOGUE_PARAMETERS", attachment.parameters())
      .define("EPILOGUE_ARGUMENTS", attachment.arguments());
  return true;
}

}  // namespace clnet::exec

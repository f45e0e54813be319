#include "lib/exec/fuse/prologue.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/exec/fuse/attachment.h"
#include "lib/exec/fuse/expression.h"

namespace clnet::exec {

bool FusedPrologue::possible(const ElementwiseKernel& kernel) {
  return kernel.outputs.size() == 1 && !kernel.buffers.empty() &&
         std::all_of(kernel.loads.begin(), kernel.loads.end(),
                     [](const auto& load) { return load.at.linear || load.at.fixed(); }) &&
         std::all_of(kernel.statements.begin(), kernel.statements.end(),
                     [](const auto& statement) { return statement.at.linear || !uses_index(statement.expression.text); });
}

bool FusedPrologue::join(Launch& launch, std::string_view name) {
  if (!launch.rebind(value_, inputs_[0])) return false;
  Attachment attachment(kernel_, inputs_, launch, "b");
  const auto first = attachment.buffer(0);
  const auto storage = to_string(kernel_.buffers[0].dtype());
  attachment.pass_inputs(0);
  std::vector<std::string> places;
  for (const auto& load : kernel_.loads) places.emplace_back(load.at.linear ? "i" : "0");
  const auto body = attachment.body(places, "");
  const auto& result = kernel_.statements[kernel_.outputs[0]];
  launch.define(fmt::format("TYPE_{}", name), "computed")
      .define(fmt::format("TYPE_{}", first), storage)
      .define("PROLOGUE_STORAGE", fmt::format("CLNET_STORAGE_{}", storage))
      .define("PROLOGUE_VALUE", value_type(result.node->outputs[0].dtype, kernel_.f64))
      .define("PROLOGUE_BODY", body)
      .define("PROLOGUE_PARAMETERS", attachment.parameters())
      .define("PROLOGUE_FUNCTION_PARAMETERS", fmt::format(", IN_SHARED({}){}", first, attachment.parameters()))
      .define("PROLOGUE_FUNCTION_ARGUMENTS", fmt::format(", {0}_base, {0}_offset{1}", first, attachment.arguments()))
      .define("PROLOGUE_ARGUMENTS", fmt::format(", {0}_base, {0}_offset{1}", name, attachment.arguments()));
  return true;
}

}  // namespace clnet::exec

#include "lib/exec/fuse/attachment.h"

#include <fmt/format.h>

#include "lib/exec/fuse/expression.h"

namespace clnet::exec {

void Attachment::pass(const std::string& parameter, const std::string& argument) {
  parameters_ += ", " + parameter;
  arguments_ += ", " + argument;
}

std::string Attachment::buffer(std::size_t index) const { return fmt::format("{}{}", prefix_, index); }

void Attachment::pass_inputs(std::size_t but) {
  for (std::size_t k = 0; k < kernel_.buffers.size(); ++k) {
    if (k == but) continue;
    const auto name = buffer(k);
    launch_.in(name, inputs_[k]);
    // not restrict: where functions are inlined but not optimised, that leaves intrinsics which Oclgrind does not know
    pass(fmt::format("IN_SHARED({})", name), fmt::format("{0}_base, {0}_offset", name));
  }
  for (std::size_t k = 0; k < kernel_.scalars.size(); ++k) {
    const auto name = fmt::format("{}s{}", prefix_, k);
    launch_.scalar(name, inputs_[kernel_.buffers.size() + k]);
    pass(fmt::format("SCALAR({})", name), name);
  }
}

std::string Attachment::body(const std::vector<std::string>& loads, std::string_view known) {
  using From = ElementwiseKernel::Operand::From;
  std::string text;
  for (std::size_t k = 0; k < loads.size(); ++k)
    if (const auto name = buffer(kernel_.loads[k].buffer); !loads[k].empty())
      text += fmt::format(" \\\n  const VALUE({}) a{} = LOAD({}, {});", name, k, name, loads[k]);
  std::size_t parameter = 0;
  for (std::size_t k = 0; k < kernel_.statements.size(); ++k) {
    const auto& statement = kernel_.statements[k];
    const auto first = parameter;
    for (const double value : statement.expression.parameters) {
      const auto name = fmt::format("{}p{}", prefix_, parameter++);
      launch_.arg_float(value);
      pass("const float " + name, name);
    }
    const auto expression = rename(statement.expression.text, [&](std::string_view name) -> std::string {
      if (name == "i") return "i";
      if (name[0] == 'p') return fmt::format("{}p{}", prefix_, first + static_cast<std::size_t>(name[1] - '0'));
      const auto& operand = statement.operands.at(static_cast<std::size_t>(name[0] - 'a'));
      switch (operand.from) {
        case From::load: return loads[operand.index].empty() ? std::string(known) : fmt::format("a{}", operand.index);
        case From::scalar: return fmt::format("{}s{}", prefix_, operand.index);
        default: return fmt::format("v{}", operand.index);
      }
    });
    const auto type = statement.node->outputs[0].dtype;
    text += fmt::format(" \\\n  const {} v{} = {}; /* {} */", value_type(type, kernel_.f64), k, converted(type, expression),
                        statement.node->op->name());
  }
  return text + fmt::format(" \\\n  return v{};", kernel_.outputs[0]);
}

}  // namespace clnet::exec

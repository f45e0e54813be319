#include "lib/graph/require.h"

#include <fmt/format.h>

#include "clnet/error.h"

namespace clnet {

void require_defined(std::string_view op, std::initializer_list<Argument> arguments) {
  for (const auto& [name, tensor] : arguments)
    if (!tensor.defined()) throw Error(fmt::format("{}: argument '{}' is undefined", op, name));
}

void require_defined(std::string_view op, std::string_view name, const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].defined()) throw Error(fmt::format("{}: argument '{}[{}]' is undefined", op, name, i));
}

}  // namespace clnet

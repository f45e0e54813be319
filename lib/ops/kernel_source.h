// What a user's kernel asks for, read from its source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace clnet::ops {

struct KernelParameter {
  enum class Kind : std::uint8_t { in, out, integer, unsigned_integer, floating };
  Kind kind;
  std::string name;
};

/// The parameters of a kernel function. Throws Error, naming the kernel, when it is not there or a parameter is of another kind.
std::vector<KernelParameter> kernel_parameters(std::string_view name, std::string_view source);

}  // namespace clnet::ops

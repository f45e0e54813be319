// Elementwise operations inside another operation's kernel: the function that computes them for one element.
#pragma once

#include <string>
#include <vector>

#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

/// What a kernel and the functions that it calls take besides, what they are given, and the function's statements. Every name
/// begins with `prefix`. Text for defines.
class Attachment {
 public:
  /// `inputs` are the kernel's buffers, then its scalars.
  Attachment(const ElementwiseKernel& kernel, std::vector<Ref> inputs, Launch& launch, std::string prefix)
      : kernel_(kernel), inputs_(std::move(inputs)), launch_(launch), prefix_(std::move(prefix)) {}

  /// One more parameter: `parameter` where it is declared, `argument` where it is passed on.
  void pass(const std::string& parameter, const std::string& argument);
  /// Passes all buffers but one, and all scalars, to the launch.
  void pass_inputs(std::size_t but);
  /// The name of a buffer as LOAD() takes it.
  std::string buffer(std::size_t index) const;
  /// Statements that load (where `loads` names an index, not empty), compute and return the output for element `i`. `known` is
  /// the value of a load that has no index. Passes the operations' parameters to the launch.
  std::string body(const std::vector<std::string>& loads, std::string_view known);

  const std::string& parameters() const { return parameters_; }
  const std::string& arguments() const { return arguments_; }

 private:
  const ElementwiseKernel& kernel_;
  std::vector<Ref> inputs_;
  Launch& launch_;
  std::string prefix_, parameters_, arguments_;
};

}  // namespace clnet::exec

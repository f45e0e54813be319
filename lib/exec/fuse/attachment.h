// Elementwise operations inside another operation's kernel, as a function of one element.
#pragma once

#include <string>
#include <vector>

#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

/// The further parameters of a kernel and its functions, the arguments, and the function's statements, as text for defines. Every
/// name begins with `prefix`.
class Attachment {
 public:
  /// `inputs` are the kernel's buffers, then its scalars.
  Attachment(const ElementwiseKernel& kernel, std::vector<Ref> inputs, Launch& launch, std::string prefix)
      : kernel_(kernel), inputs_(std::move(inputs)), launch_(launch), prefix_(std::move(prefix)) {}

  /// Adds a parameter: `parameter` in declarations, `argument` in calls.
  void pass(const std::string& parameter, const std::string& argument);
  /// Passes all buffers but one, and all scalars, to the launch.
  void pass_inputs(std::size_t but);
  /// The name of a buffer for LOAD().
  std::string buffer(std::size_t index) const;
  /// Statements that load the inputs, compute, and return the output for element `i`. `loads` has an index per input; an input
  /// with an empty one has the value `known`. Passes the operations' parameters to the launch.
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

// Cases that PyTorch computed: a folder with manifest.json and a safetensors file per case, in the format of the acceptance
// data's torchref and trainref.
#pragma once

#include <filesystem>
#include <functional>

#include "tests/torch/given.h"

namespace clnet::torch {

/// Results by name; a parameter of a module may stand in for an input, whose gradient is then taken by it.
struct Results {
  Named outputs;
  Named stand_ins;
};
using Operation = std::function<Results(const Given&)>;

/// Operations and functions by PyTorch's names, however these are written: max_pool2d, MaxPool2d; with or without "loss".
class Operations {
 public:
  Operation& operator[](const std::string& name) { return all_[plain_name(name)]; }
  const Operation* find(const std::string& name) const;
  /// Runs the case's operation, or the function that its attribute "fn" names. Functions have their parameters in the name, too:
  /// celu_0.7, softmax_d-1, std_d02_biased_keep, norm2_all. Throws Failed for one that is not known and for what nothing reads.
  Results run(const Given& in) const;

 private:
  Results run_function(const Given& in, const std::string& name) const;

  std::map<std::string, Operation> all_;
};

Results y(const Tensor& value);
/// Several results: y1, y2, ... or from y0 on, as the case has them.
Results pieces(const Given& in, const std::vector<Tensor>& values);

/// An operation with values and indices along a dimension, of which a scalar is a line of one element.
Operation of_lines(const Operation& operation);

/// Of what an operation might be, where the case has no attributes that say it: the one nearest to the wanted y and, among
/// those that are equally near, to the wanted gradients.
Tensor chosen(const Given& in, const std::vector<std::function<Tensor()>>& candidates);

/// By PyTorch's name; throws Failed for one that is not known.
PadMode pad_mode(const std::string& name);

/// The operations of each kind.
void add_composed(Operations& operations);
void add_more_composed(Operations& operations);
void add_elementwise(Operations& operations);
void add_indexed(Operations& operations);
void add_losses(Operations& operations);
void add_norms(Operations& operations);
void add_products(Operations& operations);
void add_reductions(Operations& operations);
void add_schedules(Operations& operations);
void add_sequences(Operations& operations);
void add_shapes(Operations& operations);
void add_spatial(Operations& operations);
void add_training(Operations& operations);
Operations all_operations();

/// What a training does in a step: down the gradient of the loss that is built anew each time it is asked for. Returns the loss.
using Steps = std::function<Tensor(const std::function<Tensor()>& loss)>;
/// The optimizer that the attributes describe: "algo" and PyTorch's options. Throws Failed for one that is not known.
optim::Optimizer make_optimizer(const Given& in, const nn::Module& module);
/// The same, LBFGS among them.
Steps make_steps(const Given& in, const nn::Module& module);

/// The tensors of a file by name.
Named load(const std::filesystem::path& file);
/// A tensor's values in double, and its largest difference from what is wanted, against the largest that is wanted (at least
/// 1). Throws Failed where that is above the tolerance, NaN where there should be a number, or of another shape.
void compare(const std::string& what, const Tensor& got, const Tensor& want, double tolerance);

/// A case that clnet leaves out on purpose, and why: it counts as neither passed nor failed.
struct LeftOut : Failed {
  using Failed::Failed;
};
/// Runs each case, prints a line for it and at the end "N passed, N failed", with ", N left out" where there are such; 0 when
/// some passed and none failed.
class Count {
 public:
  void run(const std::string& name, const std::function<void()>& body);
  int finish() const;

 private:
  int passed_ = 0, failed_ = 0, left_out_ = 0;
};
/// What main() does: one folder as the argument, one clear line and 2 for everything that is wrong with it.
int main(int argc, char** argv, const std::function<int(const std::filesystem::path&)>& body);

}  // namespace clnet::torch

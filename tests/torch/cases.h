// Cases that PyTorch computed: a folder with manifest.json and a safetensors file per case, in the format of the acceptance
// data's torchref and trainref.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "clnet/clnet.h"

namespace clnet::torch {

using json = nlohmann::json;
using Named = std::map<std::string, Tensor>;

/// Why a case did not pass, for its line.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A case's attributes and inputs; what is not there is an undefined tensor.
struct Given {
  json attributes;
  Named inputs, outputs;

  Tensor operator[](const std::string& name) const;
  double number(const char* name, double otherwise) const;
  std::int64_t integer(const char* name, std::int64_t otherwise) const;
  bool flag(const char* name, bool otherwise = false) const;
  std::string text(const char* name, const std::string& otherwise) const;
  /// An extent per axis, given as a list or as one number for all; `otherwise` where it is absent.
  std::vector<std::int64_t> axes(const char* name, std::size_t count, std::int64_t otherwise) const;
  Reduction reduction() const;
};

/// Results by name; a parameter of a module may stand in for an input, whose gradient is then taken by it.
struct Results {
  Named outputs;
  Named stand_ins;
};
using Operation = std::function<Results(const Given&)>;
using Operations = std::map<std::string, Operation>;

Results y(const Tensor& value);

/// The operations of each kind, by the manifest's names.
void add_elementwise(Operations& operations);
void add_losses(Operations& operations);
void add_norms(Operations& operations);
void add_products(Operations& operations);
void add_sequences(Operations& operations);
void add_shapes(Operations& operations);
void add_spatial(Operations& operations);
void add_training(Operations& operations);

/// The optimizer that the attributes describe: "algo" and PyTorch's options. Throws Failed for one that is not known.
optim::Optimizer make_optimizer(const Given& in, const nn::Module& module);

/// The tensors of a file by name.
Named load(const std::filesystem::path& file);
/// A tensor's values in double, and its largest difference from what is wanted, against the largest that is wanted (at least
/// 1). Throws Failed where that is above the tolerance, NaN where there should be a number, or of another shape.
void compare(const std::string& what, const Tensor& got, const Tensor& want, double tolerance);

/// Runs each case, prints a line for it and at the end "N passed, N failed"; 0 when all passed.
class Count {
 public:
  void run(const std::string& name, const std::function<void()>& body);
  int finish() const;

 private:
  int passed_ = 0, failed_ = 0;
};
/// What main() does: one folder as the argument, one clear line and 2 for everything that is wrong with it.
int main(int argc, char** argv, const std::function<int(const std::filesystem::path&)>& body);

}  // namespace clnet::torch

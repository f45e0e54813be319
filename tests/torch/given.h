// What a case gives: attributes and inputs, under any of the names that PyTorch and its users have for them. All that a case
// gives must be read: what an operation leaves out would be a case that passes or fails for another reason than it says.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
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

/// Names of one thing: the first that a case has counts.
struct Names {
  std::vector<std::string> all;
  Names() = default;
  Names(const char* one) : all{one} {}         // NOLINT(google-explicit-constructor)
  Names(const std::string& one) : all{one} {}  // NOLINT(google-explicit-constructor)
  Names(std::initializer_list<const char*> names) : all(names.begin(), names.end()) {}
};

/// A name without case, underscores and hyphens: MaxPool2d and max_pool2d are one.
std::string plain_name(const std::string& name);

class Given {
 public:
  std::string op;
  Named outputs;  ///< what is wanted
  /// The wanted gradients of inputs, and those of the outputs they come from; empty where there are none.
  Named gradients, output_gradients;

  Given() = default;
  Given(std::string operation, json attributes, Named inputs, Named wanted);
  /// The same for another operation, with attributes that only this copy has.
  Given with(std::string operation, const json& more) const;

  /// An input; undefined where there is none.
  Tensor operator[](const Names& names) const;
  const Named& inputs() const { return inputs_; }
  /// The inputs first, first + 1, ..., as many as there are: of a letter (a, b, c) or of numbers behind one (g1, g2).
  std::vector<Tensor> operands() const;
  /// A mask: what is not bool and not floating says where it is not 0.
  Tensor mask(const Names& names) const;

  /// An attribute; null where there is none, and where it is null.
  const json* find(const Names& names) const;
  double number(const Names& names, double otherwise) const;
  std::int64_t integer(const Names& names, std::int64_t otherwise) const;
  bool flag(const Names& names, bool otherwise = false) const;
  std::string text(const Names& names, const std::string& otherwise) const;
  std::optional<std::vector<double>> numbers(const Names& names) const;
  std::optional<std::vector<std::int64_t>> integers(const Names& names) const;
  /// An extent per axis, given as a list or as one number for all; `otherwise` where it is absent.
  std::vector<std::int64_t> axes(const Names& names, std::size_t count, std::int64_t otherwise) const;
  /// A number that may stand in the function's name instead, as the i-th there: celu_0.7.
  double parameter(std::size_t i, const Names& names, double otherwise) const;
  /// Dimensions as an attribute or in the function's name: mean_d02; a single one without a letter, too: softmax_1.
  std::optional<std::vector<int>> dims() const;
  int dim(int otherwise) const;
  Reduction reduction() const;
  /// Attributes that repeat what the tensors tell, or that change nothing.
  void restated(const Names& names) const;

  /// Throws Failed naming the first attribute or input that nothing has read. Attributes that only explain may stay, and those
  /// that are null or false: a choice not made.
  void require_all_read() const;

 private:
  json attributes_ = json::object();
  Named inputs_;
  std::shared_ptr<std::set<std::string>> read_ = std::make_shared<std::set<std::string>>();
  std::shared_ptr<std::set<std::string>> used_ = std::make_shared<std::set<std::string>>();
};

}  // namespace clnet::torch

// Reading states of optimizers, averages and the like: everything is looked at before anything changes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/io.h"

namespace clnet::optim {

class StateReader {
 public:
  explicit StateReader(const io::StateDict& state);

  bool has(const std::string& name) const { return given_.contains(name); }
  /// The tensor of that name; what is missing, undefined or of another spec is a fault.
  Tensor take(const std::string& name, const Spec& spec);
  /// A count (i64 scalar, not below 0); 0 where it is a fault.
  std::int64_t count(const std::string& name);
  /// A number that state_number() made; 0 where it is a fault.
  double number(const std::string& name);
  void fault(std::string text) { faults_.push_back(std::move(text)); }
  bool good() const { return faults_.empty(); }
  /// Throws Error with all faults, among them what nobody took.
  void require_fit(std::string_view what);

 private:
  std::map<std::string, Tensor> given_;
  std::vector<std::string> faults_;
};

/// A number of the host as three of f32 whose sum it is.
Tensor state_number(double value);

}  // namespace clnet::optim

#include "lib/optim/state_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "clnet/error.h"

namespace clnet::optim {

StateReader::StateReader(const io::StateDict& state) {
  for (const auto& [name, tensor] : state)
    if (!given_.emplace(name, tensor).second) faults_.push_back(fmt::format("{} is given twice", name));
}

Tensor StateReader::take(const std::string& name, const Spec& spec) {
  const auto found = given_.find(name);
  if (found == given_.end()) {
    faults_.push_back(fmt::format("{} is missing", name));
    return {};
  }
  auto tensor = found->second;
  given_.erase(found);
  if (!tensor.defined())
    faults_.push_back(fmt::format("{} is undefined", name));
  else if (tensor.spec() != spec)
    faults_.push_back(fmt::format("{} is {}, not {}", name, to_string(tensor.spec()), to_string(spec)));
  return tensor;
}

std::int64_t StateReader::count(const std::string& name) {
  const auto before = faults_.size();
  const auto tensor = take(name, {Shape{}, Dtype::i64});
  if (faults_.size() != before) return 0;
  const auto value = tensor.item<std::int64_t>();
  if (value >= 0) return value;
  faults_.push_back(fmt::format("{} is {}", name, value));
  return 0;
}

double StateReader::number(const std::string& name) {
  const auto before = faults_.size();
  const auto tensor = take(name, {Shape{3}, Dtype::f32});
  if (faults_.size() != before) return 0;
  const auto parts = tensor.to_vector<float>();
  return double{parts[0]} + parts[1] + parts[2];
}

void StateReader::require_fit(std::string_view what) {
  for (const auto& [name, tensor] : given_) faults_.push_back(fmt::format("{} is not known", name));
  given_.clear();
  if (!faults_.empty()) throw Error(fmt::format("the state does not fit the {}: {}", what, fmt::join(faults_, "; ")));
}

Tensor state_number(double value) {
  std::vector<float> parts;
  for (int i = 0; i < 3; ++i) {
    parts.push_back(static_cast<float>(value));
    value = std::isfinite(parts.back()) ? value - parts.back() : 0;
  }
  return Tensor::from(parts, {3});
}

}  // namespace clnet::optim

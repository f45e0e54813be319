#include "tests/torch/given.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>

namespace clnet::torch {

namespace {

double to_number(const std::string& name, const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_string()) {
    // As Python writes what JSON cannot: inf, -inf, nan.
    const auto text = value.get<std::string>();
    char* end = nullptr;
    const double result = std::strtod(text.c_str(), &end);
    if (!text.empty() && end == text.c_str() + text.size()) return result;
  }
  throw Failed(fmt::format("{} is {}, no number", name, value.dump()));
}

std::int64_t whole(const std::string& name, double value) {
  if (value != std::floor(value) || std::abs(value) > 0x1p53) throw Failed(fmt::format("{} is {}, no whole number", name, value));
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::string plain_name(const std::string& name) {
  std::string result;
  for (const char c : name)
    if (c != '_' && c != '-' && c != ' ') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

Given::Given(std::string operation, json attributes, Named inputs, Named wanted)
    : op(std::move(operation)), outputs(std::move(wanted)), attributes_(std::move(attributes)), inputs_(std::move(inputs)) {
  if (attributes_.is_null()) attributes_ = json::object();
  if (!attributes_.is_object()) throw Failed("the attributes are no object: " + attributes_.dump());
}

Given Given::with(std::string operation, const json& more) const {
  Given result = *this;
  result.op = std::move(operation);
  result.attributes_.update(more);
  return result;
}

Tensor Given::operator[](const Names& names) const {
  for (const auto& name : names.all)
    if (const auto found = inputs_.find(name); found != inputs_.end()) {
      used_->insert(name);
      return found->second;
    }
  return {};
}

std::vector<Tensor> Given::operands() const {
  std::vector<Tensor> result;
  for (char name = 'a'; inputs_.contains(std::string(1, name)); ++name) result.push_back((*this)[std::string(1, name)]);
  for (const char* letter : {"x", "g", "t", "grad", "tensor"})
    for (int first = 0; first < 2 && result.empty(); ++first)
      for (int i = first; inputs_.contains(fmt::format("{}{}", letter, i)); ++i)
        result.push_back((*this)[fmt::format("{}{}", letter, i)]);
  return result;
}

Tensor Given::mask(const Names& names) const {
  const auto result = (*this)[names];
  if (!result.defined() || result.dtype() == Dtype::boolean || is_floating(result.dtype())) return result;
  return not_equal(result, 0.0);
}

const json* Given::find(const Names& names) const {
  for (const auto& name : names.all)
    if (const auto found = attributes_.find(name); found != attributes_.end()) {
      read_->insert(name);
      return found->is_null() ? nullptr : &*found;
    }
  return nullptr;
}

double Given::number(const Names& names, double otherwise) const {
  const auto* found = find(names);
  return found == nullptr ? otherwise : to_number(names.all[0], *found);
}

std::int64_t Given::integer(const Names& names, std::int64_t otherwise) const {
  const auto* found = find(names);
  return found == nullptr ? otherwise : whole(names.all[0], to_number(names.all[0], *found));
}

bool Given::flag(const Names& names, bool otherwise) const {
  const auto* found = find(names);
  return found == nullptr ? otherwise : to_number(names.all[0], *found) != 0;
}

std::string Given::text(const Names& names, const std::string& otherwise) const {
  const auto* found = find(names);
  if (found == nullptr) return otherwise;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::optional<std::vector<double>> Given::numbers(const Names& names) const {
  const auto* found = find(names);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) return std::vector<double>{to_number(names.all[0], *found)};
  std::vector<double> result;
  for (const auto& value : *found) result.push_back(to_number(names.all[0], value));
  return result;
}

std::optional<std::vector<std::int64_t>> Given::integers(const Names& names) const {
  const auto found = numbers(names);
  if (!found) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const double value : *found) result.push_back(whole(names.all[0], value));
  return result;
}

std::vector<std::int64_t> Given::axes(const Names& names, std::size_t count, std::int64_t otherwise) const {
  auto result = integers(names).value_or(std::vector<std::int64_t>{otherwise});
  if (result.size() == 1) result.resize(count, result[0]);
  if (result.size() != count) throw Failed(fmt::format("{} has {} numbers, not {}", names.all[0], result.size(), count));
  return result;
}

double Given::parameter(std::size_t i, const Names& names, double otherwise) const {
  if (const auto* found = find(names)) return to_number(names.all[0], *found);
  const auto spelled = numbers("numbers");
  return spelled && i < spelled->size() ? (*spelled)[i] : otherwise;
}

std::optional<std::vector<int>> Given::dims() const {
  const auto found = integers({"dim", "dims", "axis", "axes"});
  if (!found) return std::nullopt;
  return std::vector<int>(found->begin(), found->end());
}

int Given::dim(int otherwise) const {
  const auto all = dims();
  if (!all) return static_cast<int>(whole("dim", parameter(0, Names{}, otherwise)));
  if (all->empty()) return otherwise;
  if (all->size() > 1) throw Failed(fmt::format("{} takes one dimension, not {}", op, all->size()));
  return (*all)[0];
}

Reduction Given::reduction() const {
  const auto name = text("reduction", "mean");
  if (name == "none") return Reduction::none;
  if (name == "sum") return Reduction::sum;
  if (name == "mean" || name == "batchmean" || name == "elementwise_mean") return Reduction::mean;
  throw Failed("unknown reduction " + name);
}

void Given::restated(const Names& names) const { read_->insert(names.all.begin(), names.all.end()); }

void Given::require_all_read() const {
  // What explains a case to its readers; "target": "probabilities", say, is told by the target's dtype.
  static const std::set<std::string> explaining{"gate_order", "cond",    "target",      "detail", "details",
                                                "note",       "comment", "description", "seed",   "formula"};
  for (const auto& [name, value] : attributes_.items())
    if (!value.is_null() && value != false && !read_->contains(name) && !explaining.contains(name))
      throw Failed(fmt::format("nothing reads the attribute {}", name));
  for (const auto& [name, tensor] : inputs_)
    if (!used_->contains(name)) throw Failed("nothing reads the input " + name);
}

}  // namespace clnet::torch

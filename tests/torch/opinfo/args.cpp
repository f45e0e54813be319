#include "tests/torch/opinfo/args.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

namespace clnet::torch::opinfo {

namespace {

[[noreturn]] void refuse(const std::string& name, const json& value, const std::string& kind) {
  throw Failed(fmt::format("argument {} is {}, no {}", name, value.dump(), kind));
}

double as_number(const json& value, const std::string& name) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  // As Python writes what JSON cannot.
  if (value == "inf") return INFINITY;
  if (value == "-inf") return -INFINITY;
  if (value == "nan") return NAN;
  refuse(name, value, "number");
}

}  // namespace

bool holds(const json& value, const std::string& kind) { return value.is_object() && value.contains(kind); }
bool holds_tensor(const json& value) { return holds(value, "tensor"); }

std::int64_t as_integer(const json& value, const std::string& name) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  const double number = as_number(value, name);
  if (number != std::floor(number) || std::abs(number) > 0x1p53) refuse(name, value, "whole number");
  return static_cast<std::int64_t>(number);
}

Args::Args(json args, json kwargs, Named tensors)
    : args_(std::move(args)), kwargs_(std::move(kwargs)), tensors_(std::move(tensors)) {
  if (!args_.is_array()) throw Failed("the arguments are no list: " + args_.dump());
  if (!kwargs_.is_object()) throw Failed("the named arguments are no object: " + kwargs_.dump());
}

const json* Args::find(int at, const std::string& name) const {
  const json* found = nullptr;
  if (at >= 0 && at < count()) {
    read_.insert(at);
    found = &args_[static_cast<std::size_t>(at)];
  } else if (const auto named = kwargs_.find(name); named != kwargs_.end()) {
    named_.insert(name);
    found = &*named;
  }
  return found == nullptr || found->is_null() ? nullptr : found;
}

const json& Args::needed(int at, const std::string& name) const {
  const auto* found = find(at, name);
  if (found == nullptr) throw Failed("argument " + name + " is missing");
  return *found;
}

bool Args::is_tensor(int at, const std::string& name) const {
  const auto* found = find(at, name);
  return found != nullptr && holds_tensor(*found);
}

bool Args::is_list(int at, const std::string& name) const {
  const auto* found = find(at, name);
  return found != nullptr && found->is_array();
}

bool Args::is_text(int at, const std::string& name) const {
  const auto* found = find(at, name);
  return found != nullptr && found->is_string();
}

Tensor Args::as_tensor(const json& value, const std::string& name) const {
  if (!holds_tensor(value) || !value["tensor"].is_string()) refuse(name, value, "tensor");
  const auto found = tensors_.find(value["tensor"].get<std::string>());
  if (found == tensors_.end()) throw Failed(fmt::format("argument {}: there is no tensor {}", name, value["tensor"].dump()));
  return found->second;
}

Tensor Args::tensor(int at, const std::string& name) const { return as_tensor(needed(at, name), name); }

Tensor Args::maybe_tensor(int at, const std::string& name) const {
  const auto* found = find(at, name);
  return found == nullptr ? Tensor() : as_tensor(*found, name);
}

std::vector<Tensor> Args::tensors(int at, const std::string& name) const {
  std::vector<Tensor> result;
  if (is_list(at, name)) {
    for (const auto& value : needed(at, name)) result.push_back(as_tensor(value, name));
    return result;
  }
  for (; at < count(); ++at) result.push_back(tensor(at, name));
  return result;
}

Operand Args::operand(int at, const std::string& name) const {
  const auto& value = needed(at, name);
  if (holds_tensor(value)) return as_tensor(value, name);
  return as_number(value, name);
}

double Args::number(int at, const std::string& name) const { return as_number(needed(at, name), name); }

double Args::number(int at, const std::string& name, double otherwise) const {
  return maybe_number(at, name).value_or(otherwise);
}

std::optional<double> Args::maybe_number(int at, const std::string& name) const {
  const auto* found = find(at, name);
  return found == nullptr ? std::nullopt : std::optional(as_number(*found, name));
}

std::int64_t Args::integer(int at, const std::string& name) const { return as_integer(needed(at, name), name); }

std::int64_t Args::integer(int at, const std::string& name, std::int64_t otherwise) const {
  const auto* found = find(at, name);
  return found == nullptr ? otherwise : as_integer(*found, name);
}

bool Args::flag(int at, const std::string& name, bool otherwise) const {
  const auto* found = find(at, name);
  return found == nullptr ? otherwise : as_number(*found, name) != 0;
}

std::string Args::text(int at, const std::string& name, const std::string& otherwise) const {
  const auto* found = find(at, name);
  if (found == nullptr) return otherwise;
  if (!found->is_string()) refuse(name, *found, "text");
  return found->get<std::string>();
}

std::optional<std::vector<std::int64_t>> Args::maybe_integers(int at, const std::string& name) const {
  const auto* found = find(at, name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) return std::vector<std::int64_t>{as_integer(*found, name)};
  std::vector<std::int64_t> result;
  for (const auto& value : *found) result.push_back(value.is_null() ? -1 : as_integer(value, name));
  return result;
}

std::vector<std::int64_t> Args::integers(int at, const std::string& name) const {
  static_cast<void>(needed(at, name));
  return *maybe_integers(at, name);
}

std::optional<std::vector<double>> Args::maybe_numbers(int at, const std::string& name) const {
  const auto* found = find(at, name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) return std::vector<double>{as_number(*found, name)};
  std::vector<double> result;
  for (const auto& value : *found) result.push_back(as_number(value, name));
  return result;
}

std::vector<std::int64_t> Args::sizes(int at, const std::string& name) const {
  if (at >= count() || is_list(at, name)) return integers(at, name);
  std::vector<std::int64_t> result;
  for (; at < count(); ++at) result.push_back(integer(at, name));
  return result;
}

Dims Args::dims(int at, const std::string& name) const {
  Dims result;
  for (const auto dim : maybe_integers(at, name).value_or(std::vector<std::int64_t>{})) result.push_back(static_cast<int>(dim));
  return result;
}

std::vector<std::int64_t> Args::axes(int at, const std::string& name, std::size_t count, std::int64_t otherwise) const {
  auto result = maybe_integers(at, name).value_or(std::vector<std::int64_t>{});
  if (result.empty()) result = {otherwise};
  if (result.size() == 1) result.resize(count, result[0]);
  if (result.size() != count) throw Failed(fmt::format("argument {} has {} numbers, not {}", name, result.size(), count));
  return result;
}

Dtype Args::dtype(int at, const std::string& name, Dtype otherwise) const {
  static const std::map<std::string, Dtype> known{{"f32", Dtype::f32}, {"i64", Dtype::i64}, {"i32", Dtype::i32},
                                                  {"u8", Dtype::u8},   {"i8", Dtype::i8},   {"bool", Dtype::boolean}};
  const auto* found = find(at, name);
  if (found == nullptr) return otherwise;
  if (!holds(*found, "dtype") || !(*found)["dtype"].is_string()) refuse(name, *found, "dtype");
  const auto dtype = known.find((*found)["dtype"].get<std::string>());
  if (dtype == known.end()) refuse(name, *found, "dtype");
  return dtype->second;
}

Reduction Args::reduction(int at, const std::string& name) const {
  const auto word = text(at, name, "mean");
  if (word == "none") return Reduction::none;
  if (word == "sum") return Reduction::sum;
  if (word == "mean") return Reduction::mean;
  throw Failed("unknown reduction " + word);
}

void Args::without_effect(const std::set<std::string>& names) const { named_.insert(names.begin(), names.end()); }

void Args::require_all_read() const {
  for (int at = 0; at < count(); ++at)
    if (!read_.contains(at)) throw Failed(fmt::format("nothing reads argument {}", at));
  for (const auto& [name, value] : kwargs_.items())
    if (!named_.contains(name)) throw Failed("nothing reads argument " + name);
}

}  // namespace clnet::torch::opinfo

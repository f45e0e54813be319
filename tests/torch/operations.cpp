// Finding a case's operation by its name, and the parameters that stand in a function's name.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

bool read_number(const std::string& text, double& number) {
  if (text.empty() || text == "nan" || text == "infinity") return false;
  char* end = nullptr;
  number = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size();
}

/// "d02": dimensions 0 and 2; "d-1": the last.
std::vector<int> read_dims(const std::string& text) {
  std::vector<int> result;
  int sign = 1;
  for (const char c : text) {
    if (c == '-') {
      sign = -1;
      continue;
    }
    if (c < '0' || c > '9') return {};
    result.push_back(sign * (c - '0'));
    sign = 1;
  }
  return result;
}

/// JSON has no infinity.
json as_json(double number) { return std::isfinite(number) ? json(number) : json(number > 0 ? "inf" : "-inf"); }

/// A function's name, split at underscores into words and what follows them, as attributes.
struct Spelled {
  std::string name;
  json attributes = json::object();

  Spelled(const std::string& text, bool letters) : letters_(letters) {
    for (std::size_t from = 0; from <= text.size();) {
      const auto to = std::min(text.find('_', from), text.size());
      word(text.substr(from, to - from));
      from = to + 1;
    }
  }

  /// The number at the end of the name becomes the first parameter: norm2, pixel_shuffle3.
  bool split_number() {
    const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; };
    auto end = name.size();
    if (name.ends_with("inf"))
      end -= 3;
    else
      while (end > 0 && digit(name[end - 1])) --end;
    if (end > 0 && name[end - 1] == '-') --end;
    double number = 0;
    if (end == 0 || end == name.size() || !read_number(name.substr(end), number)) return false;
    auto& numbers = attributes["numbers"];
    if (numbers.is_null()) numbers = json::array();
    numbers.insert(numbers.begin(), as_json(number));
    name.resize(end);
    return true;
  }

 private:
  /// Whether numbers behind letters are parameters.
  bool letters_;

  void word(const std::string& text) {
    // softplus_b2
    const auto letters = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
    const bool behind_letters = letters_ && !name.empty() && letters != std::string::npos;
    const auto dims = read_dims(text.starts_with("dim") ? text.substr(3) : text.starts_with('d') ? text.substr(1) : "no");
    double number = 0;
    if (!dims.empty())
      attributes["dim"] = dims;
    else if (read_number(text, number) || (behind_letters && read_number(text.substr(letters), number)))
      attributes["numbers"].push_back(as_json(number));
    else if (text == "biased" || text == "unbiased")
      attributes["unbiased"] = text == "unbiased";
    else if (text == "keep" || text == "keepdim")
      attributes["keepdim"] = true;
    else if (text != "all")
      name += (name.empty() ? "" : "_") + text;
  }
};

double largest_difference(const Tensor& got, const Tensor& want) {
  const auto g = cast(got, Dtype::f32).to_vector<float>(), w = cast(want, Dtype::f32).to_vector<float>();
  double result = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i]))) continue;
    const double difference = std::abs(static_cast<double>(g[i]) - w[i]);
    result = std::max(result, std::isnan(difference) ? INFINITY : difference);
  }
  return result;
}

/// How far the gradients that y has are from those that are wanted.
double gradient_distance(const Given& in, const Tensor& y) {
  const auto from = in.output_gradients.find("y");
  if (from == in.output_gradients.end()) return 0;
  std::vector<Tensor> of, want;
  for (const auto& [name, gradient] : in.gradients)
    if (const auto input = in.inputs().find(name); input != in.inputs().end()) {
      of.push_back(input->second);
      want.push_back(gradient);
    }
  const auto got = gradients(std::vector<Tensor>{y}, std::vector<Tensor>{reshape(from->second, y.shape())}, of);
  double result = 0;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (got[i].defined()) result = std::max(result, largest_difference(got[i], want[i]));
  return result;
}

/// Without the module that it is in: nn.functional.relu.
std::string without_module(std::string name) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string module :
         {"torch.", "nn.", "functional.", "F.", "Tensor.", "linalg.", "utils.", "optim.", "lr_scheduler."})
      if (name.starts_with(module)) {
        name.erase(0, module.size());
        found = true;
      }
  }
  return name;
}

}  // namespace

const Operation* Operations::find(const std::string& name) const {
  auto key = plain_name(without_module(name));
  for (const auto& tried : {key, key + "loss", key.ends_with("loss") ? key.substr(0, key.size() - 4) : key})
    if (const auto found = all_.find(tried); found != all_.end()) return &found->second;
  return nullptr;
}

Results Operations::run_function(const Given& in, const std::string& name) const {
  const auto call = [&](const Operation& operation, const std::string& called, const json& more) {
    const auto given = in.with(called, more);
    auto results = operation(given);
    given.require_all_read();
    return results;
  };
  if (const auto* found = find(name)) return call(*found, name, json::object());
  for (const bool letters : {false, true}) {
    Spelled spelled(name, letters);
    if (const auto* found = find(spelled.name)) return call(*found, spelled.name, spelled.attributes);
    if (spelled.split_number())
      if (const auto* found = find(spelled.name)) return call(*found, spelled.name, spelled.attributes);
  }
  throw Failed("unknown function " + name);
}

Results Operations::run(const Given& in) const {
  if (const auto* found = find(in.op)) {
    auto results = (*found)(in);
    in.require_all_read();
    return results;
  }
  static const std::set<std::string> kinds{"activation", "binary", "elementwise", "function",  "index", "indexing",
                                           "loss",       "math",   "reduce",      "reduction", "shape", "unary"};
  if (kinds.contains(plain_name(in.op))) return run_function(in, in.text({"fn", "function"}, ""));
  try {
    return run_function(in, in.op);
  } catch (const Failed& failed) {
    if (failed.what() == "unknown function " + in.op) throw Failed("unknown operation " + in.op);
    throw;
  }
}

Results y(const Tensor& value) { return {{{"y", value}}, {}}; }

Results pieces(const Given& in, const std::vector<Tensor>& values) {
  Results results;
  const std::size_t first = in.outputs.contains("y0") ? 0 : 1;
  for (std::size_t i = 0; i < values.size(); ++i) results.outputs[fmt::format("y{}", first + i)] = values[i];
  return results;
}

Operation of_lines(const Operation& operation) {
  return [operation](const Given& in) {
    const auto x = in[{"x", "input", "a", "self"}];
    if (x.rank() > 0) return operation(in);
    in.restated({"dim", "k", "keepdim", "numbers"});
    return Results{{{"y", x}, {"values", x}, {"indices", zeros({}, Dtype::i64)}}, {}};
  };
}

Tensor chosen(const Given& in, const std::vector<std::function<Tensor()>>& candidates) {
  const auto want = in.outputs.find("y");
  std::vector<std::pair<Tensor, double>> fitting;
  double least = INFINITY;
  for (const auto& candidate : candidates) {
    const auto value = candidate();
    if (want == in.outputs.end()) return value;
    const bool fits = value.shape() == want->second.shape() || (value.numel() == 1 && want->second.numel() == 1);
    if (!fits) continue;
    fitting.emplace_back(value, largest_difference(value, want->second));
    least = std::min(least, fitting.back().second);
  }
  if (fitting.empty()) throw Failed(in.op + " cannot have the shape " + to_string(in.outputs.at("y").shape()));
  // Equal up to rounding. What is infinitely far from y is told by the gradients as well.
  std::erase_if(fitting, [&](const auto& one) { return one.second > 2 * least + 1e-5; });
  if (fitting.size() == 1) return fitting[0].first;
  std::vector<double> off;
  for (const auto& [value, _] : fitting) off.push_back(gradient_distance(in, value));
  return fitting[static_cast<std::size_t>(std::min_element(off.begin(), off.end()) - off.begin())].first;
}

Operations all_operations() {
  Operations operations;
  // Reductions first: max and min are theirs and the elements'.
  for (const auto& add : {add_reductions, add_elementwise, add_composed, add_indexed, add_losses, add_norms, add_products,
                          add_schedules, add_sequences, add_shapes, add_spatial, add_training, add_more_composed})
    add(operations);
  return operations;
}

}  // namespace clnet::torch

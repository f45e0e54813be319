#include "tools/onnx_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "clnet/error.h"

namespace clnet::tools {
namespace {

namespace fs = std::filesystem;
using onnx::Value;

/// What differs first, in words; empty: nothing by more than the tolerance.
std::string difference(const Value& got, const Value& expected, const CaseOptions& options) {
  if (got.is_sequence != expected.is_sequence) return "one is a sequence, the other is not";
  if (got.is_sequence) {
    if (got.elements.size() != expected.elements.size())
      return fmt::format("{} elements instead of {}", got.elements.size(), expected.elements.size());
    for (std::size_t i = 0; i < got.elements.size(); ++i)
      if (auto why = difference(got.elements[i], expected.elements[i], options); !why.empty())
        return fmt::format("element {}: {}", i, why);
    return {};
  }
  if (got.tensor.defined() != expected.tensor.defined())
    return got.tensor.defined() ? "there is a value where none is expected" : "there is no value";
  if (!got.tensor.defined()) return {};
  if (got.type != expected.type) return fmt::format("the type is {} instead of {}", got.type, expected.type);
  if (!(got.tensor.shape() == expected.tensor.shape()))
    return fmt::format("the shape is {} instead of {}", to_string(got.tensor.shape()), to_string(expected.tensor.shape()));
  const auto a = got.tensor.to_vector<double>(), b = expected.tensor.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) continue;
    if (!(std::abs(a[i] - b[i]) <= options.atol + options.rtol * std::abs(b[i])))
      return fmt::format("element {} is {} instead of {}", i, a[i], b[i]);
  }
  return {};
}

std::string file_of(const fs::path& folder, std::string_view kind, std::size_t index) {
  return (folder / fmt::format("{}_{}.pb", kind, index)).string();
}

}  // namespace

std::string run_case(const fs::path& folder, const CaseOptions& options) {
  auto model = onnx::load(folder / "model.onnx", {.f64_as_f32 = options.f64_as_f32, .passes = options.passes});
  if (!model.missing_operators().empty()) return "unsupported " + model.missing_operators().front().operation;
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) sets.push_back(entry.path());
  std::sort(sets.begin(), sets.end());
  if (sets.empty()) return "FAIL there is no test_data_set";
  std::size_t compared = 0;
  for (const auto& set : sets) {
    options.before(model);
    // Files are of the inputs without a value in the network, in order.
    std::vector<Value> inputs(model.inputs().size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (model.inputs()[i].optional || !fs::exists(file_of(set, "input", next))) continue;
      inputs[i] = onnx::load_value(file_of(set, "input", next++), model.inputs()[i]);
    }
    const auto outputs = model.run_values(inputs);
    for (std::size_t i = 0; fs::exists(file_of(set, "output", i)); ++i) {
      if (i >= outputs.size()) return fmt::format("FAIL there is no output {}", i);
      ++compared;
      const auto expected = onnx::load_value(file_of(set, "output", i), model.outputs()[i]);
      if (const auto why = difference(outputs[i], expected, options); !why.empty())
        return fmt::format("FAIL output {}: {}", i, why);
    }
  }
  return compared > 0 ? "pass" : "FAIL there is no output to compare with";
}

std::string checked_case(const fs::path& folder, const CaseOptions& options) {
  std::string line;
  try {
    line = run_case(folder, options);
  } catch (const Unsupported& error) {
    line = fmt::format("unsupported {}", error.what());
  } catch (const std::exception& error) {
    line = fmt::format("FAIL {}", error.what());
  }
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::vector<fs::path> cases_in(const fs::path& folder) {
  // One without a model is none, and fails.
  const auto is_case = [](const fs::path& path) {
    return fs::exists(path / "model.onnx") || fs::exists(path / "test_data_set_0");
  };
  if (is_case(folder)) return {folder};
  if (!fs::is_directory(folder)) throw FileError(fmt::format("{}: is no folder of cases", folder.string()));
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory() && is_case(entry.path())) out.push_back(entry.path());
  if (out.empty()) throw FileError(fmt::format("{}: holds no case with a model.onnx", folder.string()));
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace clnet::tools

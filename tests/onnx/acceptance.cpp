// ONNX's own conformance cases and whole networks, where the acceptance data are.
#include "tests/acceptance.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"

using namespace clnet;
namespace fs = std::filesystem;

namespace {

/// Empty where all outputs of a case are as they should be; operators that are missing begin with "unsupported".
std::string run(const fs::path& folder) {
  try {
    auto model = onnx::load(folder / "model.onnx");
    if (!model.missing_operators().empty()) return "unsupported " + model.missing_operators()[0].operation;
    for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set) {
      const auto files = folder / ("test_data_set_" + std::to_string(set));
      const auto file = [&](const char* kind, std::size_t i) { return files / (kind + std::to_string(i) + ".pb"); };
      std::vector<onnx::Value> inputs(model.inputs().size());
      std::size_t next = 0;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (!model.inputs()[i].optional && fs::exists(file("input_", next)))
          inputs[i] = onnx::load_tensor(file("input_", next++), model.inputs()[i].is_sequence);
      const auto outputs = model.run_values(inputs);
      for (std::size_t i = 0; i < outputs.size() && fs::exists(file("output_", i)); ++i) {
        if (outputs[i].is_sequence) continue;
        const auto expected = onnx::load_tensor(file("output_", i));
        if (outputs[i].type != expected.type) return "output of type " + outputs[i].type + " instead of " + expected.type;
        if (!(outputs[i].tensor.shape() == expected.tensor.shape())) return "output of another shape";
        const auto a = outputs[i].tensor.to_vector<double>(), b = expected.tensor.to_vector<double>();
        for (std::size_t k = 0; k < a.size(); ++k)
          if (!(std::abs(a[k] - b[k]) <= 1e-5 + 1e-3 * std::abs(b[k])) && !(a[k] == b[k]) && !(a[k] != a[k] && b[k] != b[k]))
            return "element " + std::to_string(k) + " is " + std::to_string(a[k]) + " instead of " + std::to_string(b[k]);
      }
    }
  } catch (const Unsupported& error) {
    return std::string("unsupported ") + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// Runs every `step`th case of those that no note disputes. Counts those that pass, and fails for those that give something else.
int passed_of(const fs::path& root, const std::string& kind, std::size_t step) {
  std::ifstream file(root / "manifest.json");
  const auto manifest = nlohmann::json::parse(file);
  std::set<std::string> disputed;
  for (const auto& each : manifest)
    if (each.value("note", "") != "") disputed.insert(fs::path(each.at("path").get<std::string>()).filename());
  std::vector<fs::path> cases;
  for (const auto& entry : fs::recursive_directory_iterator(root / kind))
    if (fs::exists(entry.path() / "model.onnx") && !disputed.contains(entry.path().filename())) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  int passed = 0;
  for (std::size_t i = 0; i < cases.size(); i += step) {
    const auto why = run(cases[i]);
    INFO(cases[i].string() << ": " << why);
    passed += why.empty();
    CHECK((why.empty() || why.starts_with("unsupported")));
  }
  return passed;
}

}  // namespace

TEST_CASE("a part of ONNX's conformance cases") {
  const auto root = test::acceptance("onnx");
  if (!root) return;
  CHECK(passed_of(*root, "opset17", 12) >= 34);
  CHECK(passed_of(*root, "opset26", 12) >= 28);
}

TEST_CASE("ONNX's conformance cases, and its whole networks", "[long]") {
  const auto root = test::acceptance("onnx");
  if (!root) return;
  CHECK(passed_of(*root, "opset17", 1) >= 445);
  CHECK(passed_of(*root, "opset26", 1) >= 365);
  CHECK(passed_of(*root, "light", 1) >= 8);
}

TEST_CASE("whole networks") {
  const auto root = test::acceptance("models");
  if (!root) return;
  for (const auto& entry : fs::directory_iterator(*root))
    // Not of bytes: what was written down saturated sums of products, which clnet and onnxruntime on other CPUs add exactly.
    if (fs::exists(entry.path() / "model.onnx") && entry.path().filename() != "shufflenet-v2-int8") {
      const auto why = run(entry.path());
      INFO(entry.path().string());
      CHECK(why == "");
    }
}

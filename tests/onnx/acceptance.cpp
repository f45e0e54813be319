// ONNX's own conformance cases and whole networks, where the acceptance data are.
#include "tests/acceptance.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/onnx_cases.h"

using namespace clnet;
namespace fs = std::filesystem;

namespace {

/// Runs every `step`th case of those that no note disputes. Counts those that pass, and fails for those that give something else.
int passed_of(const fs::path& root, const std::string& kind, std::size_t step) {
  std::ifstream file(root / "manifest.json");
  const auto manifest = nlohmann::json::parse(file);
  // ONNX 1.21, whose cases these are, masked scores before it capped them, and numbered the stages of them in another way.
  std::set<std::string> disputed{
      "test_attention_3d_with_past_and_present_qk_matmul_bias",
      "test_attention_3d_with_past_and_present_qk_matmul_softcap",
      "test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal",
      "test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask",
      "test_attention_4d_with_qk_matmul_softcap",
  };
  for (const auto& each : manifest)
    if (each.value("note", "") != "") disputed.insert(fs::path(each.at("path").get<std::string>()).filename());
  auto cases = tools::cases_in(root / kind);
  std::erase_if(cases, [&](const auto& path) { return disputed.contains(path.filename()); });
  int passed = 0;
  for (std::size_t i = 0; i < cases.size(); i += step) {
    const auto line = tools::checked_case(cases[i], {});
    INFO(cases[i].string() << ": " << line);
    passed += line == "pass";
    CHECK(!line.starts_with("FAIL"));
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
  CHECK(passed_of(*root, "opset17", 1) >= 455);
  CHECK(passed_of(*root, "opset26", 1) >= 380);
  CHECK(passed_of(*root, "light", 1) >= 8);
}

TEST_CASE("whole networks") {
  const auto root = test::acceptance("models");
  if (!root) return;
  for (const auto& entry : fs::directory_iterator(*root))
    // Not of bytes: what was written down saturated sums of products, which clnet and onnxruntime on other CPUs add exactly.
    if (fs::exists(entry.path() / "model.onnx") && entry.path().filename() != "shufflenet-v2-int8") {
      INFO(entry.path().string());
      CHECK(tools::checked_case(entry.path(), {}) == "pass");
    }
}

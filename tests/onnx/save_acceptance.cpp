// Networks and operators of the acceptance data: loaded, saved, and loaded again.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "tests/acceptance.h"
#include "tests/support/temporary.h"

using namespace clnet;
namespace fs = std::filesystem;

namespace {

std::vector<Tensor> inputs_in(const fs::path& set, const onnx::Model& model) {
  std::vector<Tensor> inputs;
  for (const auto& input : model.inputs()) {
    const auto file = set / ("input_" + std::to_string(inputs.size()) + ".pb");
    if (input.optional) continue;
    if (!fs::exists(file)) break;
    if (input.is_sequence) throw Unsupported("a sequence");
    inputs.push_back(onnx::load_tensor(file).tensor);
    if (!inputs.back().defined()) throw Unsupported("no tensor");
  }
  return inputs;
}

bool same_shapes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i].spec() == b[i].spec())) return false;
  return true;
}

/// Empty where the network that was saved has the same parameters, to the bit, and outputs as the one that was loaded. What the
/// export refuses begins with "refused". `exact`: the outputs are the same to the bit.
std::string again(const fs::path& folder, int opset, bool& exact) {
  try {
    auto model = onnx::load(folder / "model.onnx", {.passes = false});
    if (!model.missing_operators().empty()) return "refused: lacks " + model.missing_operators()[0].operation;
    const auto examples = inputs_in(folder / "test_data_set_0", model);
    if (examples.empty()) return "refused: no inputs";
    const test::Folder work;
    const auto path = work / "model.onnx";
    try {
      onnx::save(model, examples, path, {.opset = opset});
    } catch (const Unsupported& error) {
      return std::string("refused: ") + error.what();
    } catch (const Error& error) {
      if (std::string(error.what()).find("depend") != std::string::npos) return std::string("refused: ") + error.what();
      throw;
    }
    if (const char* out = std::getenv("CLNET_ONNX_EXPORT_DIR")) {
      const auto to = fs::path(out) / ("again_" + folder.filename().string());
      fs::create_directories(to);
      fs::copy_file(path, to / "model.onnx", fs::copy_options::overwrite_existing);
      fs::copy(folder / "test_data_set_0", to / "test_data_set_0", fs::copy_options::overwrite_existing);
    }
    auto saved = onnx::load(path, {.passes = false});
    for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set) {
      const auto inputs = inputs_in(folder / ("test_data_set_" + std::to_string(set)), model);
      if (!same_shapes(inputs, examples)) continue;
      std::vector<Tensor> given(model.inputs().size());
      for (std::size_t i = 0, next = 0; i < given.size() && next < inputs.size(); ++i)
        if (!model.inputs()[i].optional) given[i] = inputs[next++];
      const auto expected = model.run(given), got = saved.run(inputs);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!(got[i].spec() == expected[i].spec())) return "output " + std::to_string(i) + " is another tensor";
        const auto a = got[i].to_vector<double>(), b = expected[i].to_vector<double>();
        double worst = 0;
        for (std::size_t k = 0; k < a.size(); ++k)
          if (!(a[k] == b[k]) && !(a[k] != a[k] && b[k] != b[k]))
            worst = std::max(worst, std::abs(a[k] - b[k]) / (1 + std::abs(b[k])));
        exact = exact && worst == 0;
        if (!(worst <= 1e-5)) return "output " + std::to_string(i) + " differs by " + std::to_string(worst);
      }
    }
    const auto before = model.state_dict(), after = saved.state_dict();
    if (before.size() != after.size()) return "another number of parameters";
    for (const auto& [name, value] : before)
      if (saved.parameter(name).value().to_vector<double>() != value.to_vector<double>()) return "another parameter " + name;
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

struct Counts {
  int passed = 0, exact = 0;
};

Counts save_again(const fs::path& root, int opset, std::size_t step = 1) {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  Counts counts;
  for (std::size_t i = 0; i < cases.size(); i += step) {
    bool exact = true;
    const auto why = again(cases[i], opset, exact);
    INFO(cases[i].string() << ": " << why);
    if (std::getenv("CLNET_ONNX_EXPORT_DIR") && !why.empty()) std::cout << cases[i].filename().string() << ": " << why << '\n';
    counts.passed += why.empty();
    counts.exact += why.empty() && exact;
    CHECK((why.empty() || why.starts_with("refused")));
  }
  return counts;
}

}  // namespace

TEST_CASE("networks of the acceptance data are saved again", "[save_again]") {
  const auto root = test::acceptance("models");
  if (!root) return;
  const auto counts = save_again(*root, 18);
  CAPTURE(counts.exact);
  CHECK(counts.passed >= 15);
  CHECK(counts.exact >= 16);
}

TEST_CASE("operators of the acceptance data are saved again", "[save_again][long]") {
  const auto root = test::acceptance("onnx");
  if (!root) return;
  const auto old = save_again(*root / "opset17", 18), recent = save_again(*root / "opset26", 26);
  CAPTURE(old.passed, old.exact, recent.passed, recent.exact);
  CHECK(old.exact >= 385);
  CHECK(recent.exact >= 270);
}

// What tests of saved networks compare, and the folders that they write for other programs.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "tests/support/temporary.h"

namespace clnet::test {

namespace fs = std::filesystem;

/// The tensor with a value, so that it is no random one of a graph.
inline Tensor eval_of(Tensor tensor) {
  eval({tensor});
  return tensor;
}

/// Examples of another batch: the first and the last sample, twice.
inline std::vector<Tensor> other_batch(const std::vector<Tensor>& examples) {
  std::vector<Tensor> result;
  for (const auto& example : examples) {
    const Tensor first = slice(example, 0, 0, 1), last = slice(example, 0, -1);
    result.push_back(eval_of(concat({first, last, last, first}, 0)));
  }
  return result;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && a.to_vector<double>() == b.to_vector<double>();
}

/// The largest difference, in parts of 1 + |b|.
inline double difference(const Tensor& a, const Tensor& b) {
  if (!(a.spec() == b.spec())) return INFINITY;
  double worst = 0;
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(x[i] == y[i]) && !(std::isnan(x[i]) && std::isnan(y[i])))
      worst = std::max(worst, std::isfinite(x[i] - y[i]) ? std::abs(x[i] - y[i]) / (1 + std::abs(y[i])) : INFINITY);
  return worst;
}

inline void check_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b, bool exact) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i, a[i].spec(), b[i].spec());
    // Steps of a formula round to the dtype.
    CHECK(difference(a[i], b[i]) <= (a[i].dtype() == Dtype::f16 ? 2e-3 : 2e-6));
    if (exact) CHECK(same_bits(a[i], b[i]));
  }
}

inline void check_state(const nn::Module& a, const nn::Module& b) {
  const auto before = a.state_dict(), after = b.state_dict();
  REQUIRE(before.size() == after.size());
  for (const auto& [name, value] : before) {
    CAPTURE(name);
    const auto found =
        std::find_if(after.begin(), after.end(), [&, &own = name](const auto& entry) { return entry.first == own; });
    REQUIRE(found != after.end());
    CHECK(same_bits(value, found->second));
  }
  CHECK(a.parameters().size() == b.parameters().size());
}

/// A folder in the layout of ONNX's tests, for other programs.
inline void write_folder(const fs::path& folder, const fs::path& model, const std::vector<std::vector<Tensor>>& inputs,
                         const onnx::Function& function) {
  fs::create_directories(folder);
  fs::copy_file(model, folder / "model.onnx", fs::copy_options::overwrite_existing);
  for (std::size_t set = 0; set < inputs.size(); ++set) {
    const auto files = folder / ("test_data_set_" + std::to_string(set));
    fs::create_directories(files);
    const auto write = [&](const char* kind, const std::vector<Tensor>& tensors) {
      for (std::size_t i = 0; i < tensors.size(); ++i) onnx::save_tensor(files / (kind + std::to_string(i) + ".pb"), tensors[i]);
    };
    write("input_", inputs[set]);
    write("output_", function(inputs[set]));
  }
}

/// Where such folders go; null: nowhere.
inline const char* export_folder() { return std::getenv("CLNET_ONNX_EXPORT_DIR"); }

/// Saves a function over the parameters of `module`, which is in inference: it computes the same when loaded, with another batch,
/// too, and has the same parameters.
inline void check_saved(const std::string& name, const onnx::Function& function, const std::vector<Tensor>& examples,
                        nn::Module& module, bool exact) {
  const Folder folder;
  const auto path = folder / "model.onnx";
  onnx::save(function, examples, path, {}, &module);
  module.inference();
  auto loaded = onnx::load(path);
  CHECK(loaded.producer().find("clnet") == 0);
  CHECK(loaded.inputs()[0].extents[0] == "batch");
  CHECK(loaded.outputs()[0].extents[0] == "batch");
  check_state(module, loaded);
  check_same(loaded.run(examples), function(examples), exact);
  const auto other = other_batch(examples);
  check_same(loaded.run(other), function(other), exact);
  if (export_folder()) write_folder(fs::path(export_folder()) / name, path, {examples, other}, function);
}

}  // namespace clnet::test

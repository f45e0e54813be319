// Cases in the layout of ONNX's tests: a folder with model.onnx and test_data_set_*/input_k.pb and output_k.pb.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "clnet/onnx.h"

namespace clnet::tools {

struct CaseOptions {
  double rtol = 1e-3, atol = 1e-5;
  bool f64_as_f32 = false, passes = true;
  /// Called with the network before each run.
  std::function<void(onnx::Model& model)> before = [](onnx::Model&) {};
};

/// How a case went: "pass", "FAIL " with the reason, or "unsupported " with the operator. Throws what reading and running throw.
std::string run_case(const std::filesystem::path& folder, const CaseOptions& options);
/// The same, where errors of the library are reasons, in one line.
std::string checked_case(const std::filesystem::path& folder, const CaseOptions& options);

/// The folder itself, or all below it that have a model.onnx. Throws FileError.
std::vector<std::filesystem::path> cases_in(const std::filesystem::path& folder);

}  // namespace clnet::tools

// Where the C++ of docs/guide runs (tests/models/recipes.cpp).
#pragma once

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>

#include "clnet/device.h"
#include "tests/support/temporary.h"

namespace clnet {

/// The working folder while a recipe runs, which may read files there; what it prints is left out.
class RecipeWorkplace {
 public:
  RecipeWorkplace() { std::filesystem::current_path(folder_.path()); }
  ~RecipeWorkplace() {
    std::cout.rdbuf(screen_);
    std::filesystem::current_path(before_);
  }
  RecipeWorkplace(const RecipeWorkplace&) = delete;
  RecipeWorkplace& operator=(const RecipeWorkplace&) = delete;
  std::string printed() const { return out_.str(); }
  const test::Folder& folder() const { return folder_; }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  test::Folder folder_;
  std::ostringstream out_;
  std::streambuf* screen_ = std::cout.rdbuf(out_.rdbuf());
};

/// The process's default device and the limits of the present one are as before in the end.
class DefaultDevice {
 public:
  ~DefaultDevice() {
    Device::set_default(device_);
    device_.set_memory_limit(limit_);
  }
  DefaultDevice() = default;
  DefaultDevice(const DefaultDevice&) = delete;
  DefaultDevice& operator=(const DefaultDevice&) = delete;

 private:
  Device device_ = Device::current();
  std::size_t limit_ = device_.memory().limit;
};

}  // namespace clnet

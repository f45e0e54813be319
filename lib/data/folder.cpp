// Where datasets lie: the well-known ones, and what a folder holds.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/base/env.h"
#include "lib/data/folder_entries.h"

namespace clnet::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* debian_fashion_mnist = "/usr/share/datasets/fashion-mnist";

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& path : entries_of(folder)) names.push_back(path.filename().string());
  return names;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The name under which an IDX file lies in the folder: as published, or with the dot that some unpackers leave in it.
std::optional<std::string> idx_name(const std::vector<std::string>& names, std::string_view stem, std::string_view kind) {
  for (const char* dot : {"-", "."})
    for (const char* suffix : {"", ".gz"})
      if (auto name = fmt::format("{}{}{}-ubyte{}", stem, dot, kind, suffix); contains(names, name)) return name;
  return std::nullopt;
}

/// N of data_batch_N.bin; nothing for other names.
std::optional<int> cifar_batch(std::string_view name) {
  constexpr std::string_view prefix = "data_batch_", suffix = ".bin";
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size()) return std::nullopt;
  int number = 0;
  const char* end = name.data() + name.size() - suffix.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && rest == end && number >= 0 ? std::optional(number) : std::nullopt;
}

ArrayDataset load_idx_folder(const fs::path& folder, const std::vector<std::string>& names, Split split) {
  const std::string_view part = split == Split::train ? "train" : "t10k";
  const auto find = [&](std::string_view content, std::string_view kind) {
    const auto stem = fmt::format("{}-{}", part, content);
    if (const auto name = idx_name(names, stem, kind)) return folder / *name;
    throw FileError(fmt::format("{}: there is no {}-{}-ubyte[.gz] in it", folder.string(), stem, kind));
  };
  const auto images = find("images", "idx3"), labels = find("labels", "idx1");
  return load_idx(images, labels);
}

ArrayDataset load_cifar_folder(const fs::path& folder, const std::vector<std::string>& names, Split split) {
  if (split == Split::test) {
    if (!contains(names, "test_batch.bin"))
      throw FileError(fmt::format("{}: there is no test_batch.bin in it, which holds CIFAR-10's test set", folder.string()));
    return load_cifar10({folder / "test_batch.bin"});
  }
  std::vector<std::pair<int, std::string>> batches;
  for (const auto& name : names)
    if (const auto number = cifar_batch(name)) batches.emplace_back(*number, name);
  if (batches.empty())
    throw FileError(fmt::format("{}: there is no data_batch_1.bin in it, which holds CIFAR-10's training set", folder.string()));
  std::sort(batches.begin(), batches.end());
  std::vector<fs::path> files;
  for (const auto& batch : batches) files.push_back(folder / batch.second);
  return load_cifar10(files);
}

/// The folder `name` in CLNET_DATA_DIR.
fs::path data_folder(std::string_view name) {
  const auto root = env::text("CLNET_DATA_DIR");
  if (!root) throw FileError(fmt::format("{}: set CLNET_DATA_DIR to the folder that holds the folder {}", name, name));
  return fs::path(*root) / name;
}

}  // namespace

ArrayDataset load_folder(const fs::path& folder, Split split) {
  const auto names = names_in(folder);
  ArrayDataset dataset;
  if (std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return name.starts_with("train-images") || name.starts_with("train-labels") || name.starts_with("t10k-");
      })) {
    dataset = load_idx_folder(folder, names, split);
  } else if (contains(names, "test_batch.bin") || std::any_of(names.begin(), names.end(), cifar_batch)) {
    dataset = load_cifar_folder(folder, names, split);
  } else {
    throw FileError(fmt::format(
        "{}: holds no dataset; expected IDX files (train-images-idx3-ubyte[.gz], ...) or CIFAR-10's (data_batch_1.bin, ...)",
        folder.string()));
  }
  const auto whole = fs::absolute(folder).lexically_normal();
  dataset.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  return dataset;
}

ArrayDataset fashion_mnist(Split split) {
  fs::path folder = debian_fashion_mnist;
  std::error_code error;
  if (env::text("CLNET_DATA_DIR") && fs::exists(data_folder("fashion-mnist"), error)) {
    folder = data_folder("fashion-mnist");
  } else if (!fs::exists(folder, error)) {
    throw FileError(
        fmt::format("fashion-mnist: {} does not exist; install Debian's package dataset-fashion-mnist, or set "
                    "CLNET_DATA_DIR to a folder that holds the folder fashion-mnist",
                    debian_fashion_mnist));
  }
  auto dataset = load_folder(folder, split);
  dataset.name = "fashion-mnist";
  dataset.class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                         "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return dataset;
}

ArrayDataset mnist(Split split) {
  auto dataset = load_folder(data_folder("mnist"), split);
  dataset.name = "mnist";
  dataset.class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  return dataset;
}

ArrayDataset cifar10(Split split) {
  auto dataset = load_folder(data_folder("cifar10"), split);
  dataset.name = "cifar10";
  return dataset;
}

}  // namespace clnet::data

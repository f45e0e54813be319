// Weights in safetensors files: reads and writes tensor by tensor, so that no second copy of the model is ever in memory.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "clnet/io.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/io/safetensors_header.h"
#include "lib/io/state_files.h"

namespace clnet::io {
namespace {

/// Where each tensor's bytes go: in order, but wider types first, so that each begins at a multiple of its element's size as
/// readers that map the file want it.
void place(std::vector<StoredTensor>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size_of(tensors[a].spec.dtype) > size_of(tensors[b].spec.dtype); });
  std::uint64_t offset = 0;
  for (const auto i : order) {
    tensors[i].begin = offset;
    offset += static_cast<std::uint64_t>(tensors[i].spec.bytes());
    tensors[i].end = offset;
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const WrittenState& state,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<StoredTensor> stored;
  for (const auto& [name, spec] : state.tensors) stored.push_back({name, spec});
  place(stored);
  const auto header = write_header(stored, metadata);
  std::vector<std::size_t> order(stored.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(stored[a].begin, stored[a].end) < std::pair(stored[b].begin, stored[b].end);
  });
  file::replace(path, [&](std::ostream& out) {
    out.write(header.data(), static_cast<std::streamsize>(header.size()));
    std::vector<char> bytes;
    for (const auto i : order) {
      bytes.resize(static_cast<std::size_t>(stored[i].spec.bytes()));
      state.read(i, bytes.data());
      out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
  });
}

void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata) {
  write_safetensors(path, written_state("save_safetensors", tensors), metadata);
}

std::map<std::string, std::string> read_safetensors(const std::filesystem::path& path, const ArraySink& sink) {
  const InputFile file(path);
  auto header = read_header(file);
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    auto& stored = header.tensors[i];
    data::Array array(stored.spec.shape, stored.spec.dtype, std::move(stored.name));
    file.read_at(header.data_offset + stored.begin, array.bytes.data(), array.bytes.size());
    if (array.dtype == Dtype::boolean)
      for (const auto byte : array.bytes)
        if (std::to_integer<int>(byte) > 1)
          file.fail(fmt::format("tensor {} of dtype BOOL holds the byte {}", in_quotes(array.name), std::to_integer<int>(byte)));
    sink(i, std::move(array));
  }
  return std::move(header.metadata);
}

Safetensors load_safetensors(const std::filesystem::path& path) {
  Safetensors out;
  out.metadata = read_safetensors(
      path, [&](std::size_t, const data::Array& array) { out.tensors.emplace_back(array.name, array.tensor()); });
  return out;
}

}  // namespace clnet::io

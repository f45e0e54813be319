// Weights in safetensors files: reads and writes tensor by tensor, so that no second copy of the model is ever in memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <ostream>
#include <set>

#include "clnet/error.h"
#include "clnet/io.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/io/safetensors_header.h"

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

void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<StoredTensor> stored;
  std::vector<Tensor> values;
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) throw Error(fmt::format("save_safetensors: tensor {} is given twice", in_quotes(name)));
    if (!tensor.defined()) throw Error(fmt::format("save_safetensors: tensor {} is not defined", in_quotes(name)));
    stored.push_back({name, tensor.spec()});
    values.push_back(tensor);
  }
  place(stored);
  const auto header = write_header(stored, metadata);
  eval(values);  // all in one plan, and before the file is touched

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
      values[i].to_bytes(bytes.data(), bytes.size());
      out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
  });
}

Safetensors load_safetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  auto header = read_header(file);
  Safetensors out;
  out.metadata = std::move(header.metadata);
  out.tensors.reserve(header.tensors.size());
  std::vector<char> bytes;
  for (auto& stored : header.tensors) {
    bytes.resize(static_cast<std::size_t>(stored.end - stored.begin));
    file.read_at(header.data_offset + stored.begin, bytes.data(), bytes.size());
    if (stored.spec.dtype == Dtype::boolean)
      for (const char byte : bytes)
        if (byte != 0 && byte != 1)
          file.fail(
              fmt::format("tensor {} of dtype BOOL holds the byte {}", in_quotes(stored.name), static_cast<unsigned char>(byte)));
    out.tensors.emplace_back(std::move(stored.name), Tensor::from_bytes(bytes.data(), bytes.size(), stored.spec));
  }
  return out;
}

}  // namespace clnet::io

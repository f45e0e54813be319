// NumPy's files: .npy is one array, .npz a zip archive of some.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <utility>

#include "clnet/data/numpy.h"
#include "clnet/error.h"
#include "clnet/io.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/io/npy_format.h"
#include "lib/io/state_files.h"
#include "lib/io/zip.h"

namespace clnet {
namespace {

constexpr std::string_view npy_ending = ".npy";

/// The bytes of a file.
class FileReader final : public io::ByteReader {
 public:
  explicit FileReader(const std::filesystem::path& path) : ByteReader(path.string()), file_(path) {}
  std::size_t read(void* target, std::size_t bytes) override {
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, most_left()));
    file_.read_at(at_, target, bytes);
    at_ += bytes;
    return bytes;
  }
  std::uint64_t most_left() const override { return file_.size() - at_; }

 private:
  InputFile file_;
  std::uint64_t at_ = 0;
};

}  // namespace

data::Array data::read_npy(const std::filesystem::path& path, Dtype doubles) {
  FileReader source(path);
  return io::read_npy_array(source, std::numeric_limits<std::uint64_t>::max(), doubles);
}

std::vector<data::Array> data::read_npz(const std::filesystem::path& path, std::uint64_t most_bytes, Dtype doubles) {
  std::vector<Array> arrays;
  io::read_npz(path, most_bytes, doubles, [&](std::size_t, Array array) { arrays.push_back(std::move(array)); });
  return arrays;
}

void io::read_npz(const std::filesystem::path& path, std::uint64_t most_bytes, Dtype doubles, const ArraySink& sink) {
  const InputFile file(path);
  std::uint64_t left = most_bytes;
  std::size_t place = 0;
  for (auto& member : zip_members(file)) {
    const auto name = member.name;
    ZipReader source(file, std::move(member));
    if (!name.ends_with(npy_ending)) source.fail("is no array: its name does not end in .npy");
    auto array = read_npy_array(source, left, doubles);
    left -= array.bytes.size();
    array.name = name.substr(0, name.size() - npy_ending.size());
    sink(place++, std::move(array));
  }
}

void io::save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  if (!tensor.defined()) throw Error("save_npy: the tensor is not defined");
  const auto header = npy_header(tensor.spec());
  std::string values(static_cast<std::size_t>(tensor.spec().bytes()), '\0');
  tensor.to_bytes(values.data(), values.size());  // before the file is touched
  const auto bytes = npy_data(tensor.dtype(), std::move(values));
  file::replace(path, [&](std::ostream& out) {
    out.write(header.data(), static_cast<std::streamsize>(header.size()));
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  });
}

Tensor io::load_npy(const std::filesystem::path& path, Dtype doubles) { return data::read_npy(path, doubles).tensor(); }

void io::write_npz(const std::filesystem::path& path, const WrittenState& state, bool compressed) {
  constexpr std::size_t most_name = 1024;
  for (const auto& [name, spec] : state.tensors)
    if (name.empty() || name.size() > most_name)
      throw Error(fmt::format("save_npz: a name has {} bytes, expected 1 to {}", name.size(), most_name));
  file::replace(path, [&](std::ostream& out) {
    ZipWriter zip(out, compressed);
    for (std::size_t i = 0; i < state.tensors.size(); ++i) {
      const auto& [name, spec] = state.tensors[i];
      std::string bytes(static_cast<std::size_t>(spec.bytes()), '\0');
      state.read(i, bytes.data());
      zip.add(name + std::string(npy_ending), npy_header(spec) + npy_data(spec.dtype, std::move(bytes)));
    }
    zip.finish();
  });
}

void io::save_npz(const std::filesystem::path& path, const StateDict& tensors, const NpzOptions& options) {
  write_npz(path, written_state("save_npz", tensors), options.compressed);
}

io::StateDict io::load_npz(const std::filesystem::path& path, Dtype doubles) {
  StateDict tensors;
  for (auto& array : data::read_npz(path, data::most_npz_bytes, doubles)) tensors.emplace_back(array.name, array.tensor());
  return tensors;
}

}  // namespace clnet

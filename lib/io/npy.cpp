// NumPy's files: .npy is one array, .npz a zip archive of some.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <set>
#include <utility>

#include "clnet/data/numpy.h"
#include "clnet/error.h"
#include "clnet/io.h"
#include "lib/base/file.h"
#include "lib/base/input_file.h"
#include "lib/io/npy_format.h"
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

data::Array data::read_npy(const std::filesystem::path& path) {
  FileReader source(path);
  return io::read_npy_array(source, std::numeric_limits<std::uint64_t>::max());
}

std::vector<data::Array> data::read_npz(const std::filesystem::path& path, std::uint64_t most_bytes) {
  const InputFile file(path);
  std::vector<Array> arrays;
  std::uint64_t left = most_bytes;
  for (auto& member : io::zip_members(file)) {
    const auto name = member.name;
    io::ZipReader source(file, std::move(member));
    if (!name.ends_with(npy_ending)) source.fail("is no array: its name does not end in .npy");
    auto array = io::read_npy_array(source, left);
    left -= array.bytes.size();
    array.name = name.substr(0, name.size() - npy_ending.size());
    arrays.push_back(std::move(array));
  }
  return arrays;
}

void io::save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  if (!tensor.defined()) throw Error("save_npy: the tensor is not defined");
  const auto header = npy_header(tensor.spec());
  const auto bytes = npy_data(tensor);  // before the file is touched
  file::replace(path, [&](std::ostream& out) {
    out.write(header.data(), static_cast<std::streamsize>(header.size()));
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  });
}

Tensor io::load_npy(const std::filesystem::path& path) { return data::read_npy(path).tensor(); }

void io::save_npz(const std::filesystem::path& path, const StateDict& tensors, const NpzOptions& options) {
  constexpr std::size_t most_name = 1024;
  std::set<std::string_view> names;
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty() || name.size() > most_name)
      throw Error(fmt::format("save_npz: a name has {} bytes, expected 1 to {}", name.size(), most_name));
    if (!names.insert(name).second) throw Error(fmt::format("save_npz: tensor {} is given twice", in_quotes(name)));
    if (!tensor.defined()) throw Error(fmt::format("save_npz: tensor {} is not defined", in_quotes(name)));
    values.push_back(tensor);
  }
  eval(values);  // all in one plan, and before the file is touched
  file::replace(path, [&](std::ostream& out) {
    ZipWriter zip(out, options.compressed);
    for (const auto& [name, tensor] : tensors)
      zip.add(name + std::string(npy_ending), npy_header(tensor.spec()) + npy_data(tensor));
    zip.finish();
  });
}

io::StateDict io::load_npz(const std::filesystem::path& path) {
  StateDict tensors;
  for (auto& array : data::read_npz(path)) tensors.emplace_back(array.name, array.tensor());
  return tensors;
}

}  // namespace clnet

#include "lib/onnx/external_data.h"

#include <fmt/format.h>

#include <ostream>

#include "clnet/error.h"
#include "lib/base/file.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

// Programs that map the file into memory want whole pages, and read shapes from the model itself.
constexpr std::uint64_t page = 4096, least_external = 1024;

}  // namespace

std::string ExternalData::add(std::string_view name, ElementType type, const Shape& shape, std::function<HostTensor()> content) {
  const auto bytes = static_cast<std::uint64_t>(shape.numel()) * size_of(type);
  if (bytes < least_external) return write_tensor(content(), name);
  const auto offset = (end_ + page - 1) / page * page;
  end_ = offset + bytes;
  pieces_.push_back({offset, std::move(content)});
  return write_external_tensor(type, shape, name, {location(), offset, bytes});
}

std::string ExternalData::add(std::string_view name, const Tensor& tensor) {
  const auto type = type_of(tensor.dtype());
  return add(name, type, tensor.shape(), [tensor, type] { return to_host(tensor, type); });
}

std::string ExternalData::add(std::string_view name, const HostTensor& tensor) {
  return add(name, tensor.type, tensor.shape, [tensor] { return tensor; });
}

void ExternalData::write(const std::function<void()>& write_model) const {
  if (is_empty()) return write_model();
  // The model is written last, and may be refused sooner.
  if (std::filesystem::is_directory(model_)) throw FileError(fmt::format("{}: is a folder, not a file", model_.string()));
  const auto path = model_.parent_path() / location();
  std::error_code ignored;
  const bool is_new = !std::filesystem::exists(path, ignored);
  write_data(path);
  try {
    write_model();
  } catch (...) {
    if (is_new) std::filesystem::remove(path, ignored);
    throw;
  }
}

void ExternalData::write_data(const std::filesystem::path& path) const {
  file::replace(path, [&](std::ostream& out) {
    static const std::string zeros(page, '\0');
    std::uint64_t at = 0;
    for (const auto& [offset, content] : pieces_) {
      out.write(zeros.data(), static_cast<std::streamsize>(offset - at));
      const auto bytes = content().bytes;
      out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      at = offset + bytes.size();
    }
  });
}

}  // namespace clnet::onnx

#include "lib/onnx/external_data.h"

#include <ostream>

#include "lib/base/file.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

// Programs that map the file into memory want whole pages, and read shapes from the model itself.
constexpr std::uint64_t page = 4096, least_external = 1024;

}  // namespace

std::string ExternalData::place(std::string_view name, ElementType type, const Shape& shape, std::uint64_t bytes,
                                std::function<HostTensor()> content) {
  if (bytes < least_external) return write_tensor(content(), name);
  const auto offset = (end_ + page - 1) / page * page;
  end_ = offset + bytes;
  pieces_.push_back({offset, std::move(content)});
  return write_external_tensor(type, shape, name, {location_, offset, bytes});
}

std::string ExternalData::add(std::string_view name, const Tensor& tensor) {
  const auto type = type_of(tensor.dtype());
  return place(name, type, tensor.shape(), static_cast<std::uint64_t>(tensor.spec().bytes()),
               [tensor, type] { return to_host(tensor, type); });
}

std::string ExternalData::add(std::string_view name, const HostTensor& tensor) {
  return place(name, tensor.type, tensor.shape, tensor.bytes.size(), [tensor] { return tensor; });
}

void ExternalData::write(const std::filesystem::path& folder) const {
  file::replace(path(folder), [&](std::ostream& out) {
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

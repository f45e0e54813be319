// TensorBoard's event files: records of TFRecord, each a small message of Protocol Buffers (tensorflow/core/util/event.proto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/os/descriptor.h"

namespace clnet::train {

/// CRC-32C (Castagnoli), as records have it: rotated, plus a constant, so that sums of sums are no sums.
std::uint32_t masked_crc32c(std::string_view bytes);

struct Scalar {
  std::string tag;
  double value;  ///< stored as f32
};

class EventFile {
 public:
  /// Makes a new file in the folder, which is made where it is missing. Readers drop what files before it have from `first_step`
  /// on. Throws FileError.
  EventFile(const std::filesystem::path& folder, std::int64_t first_step);
  /// The numbers reach the operating system at once.
  void write(std::int64_t step, std::span<const Scalar> scalars);
  /// Waits until they are on the disk.
  void sync();

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  os::Descriptor file_;
};

}  // namespace clnet::train

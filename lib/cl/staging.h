// Memory of the host for what goes from a device to the host and back in every step, as gradients that are added over devices.
#pragma once

#include <cstddef>
#include <memory>

#include "lib/cl/context.h"

namespace clnet::ocl {

/// Pinned memory where the device has memory of its own, kept from one step to the next. Use context.extension<Staging>(). Any
/// thread may call it.
class Staging : public Context::Extension {
 public:
  explicit Staging(Context& context);
  ~Staging() override;

  /// `bytes` bytes, with no values in particular. Plain memory where host and device share theirs, and where the driver has no
  /// other. The last handle gives them back, or frees them beyond the 128 MiB that are kept.
  std::shared_ptr<std::byte[]> take(std::size_t bytes);

  /// Frees what is kept.
  void trim() override;
  void reclaim(std::size_t bytes) override;

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace clnet::ocl

// Values read by the host.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "clnet/error.h"
#include "clnet/tensor.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/convert.h"
#include "lib/exec/evaluate.h"

namespace clnet {

namespace {

/// Whether a T is stored as the dtype is.
template <class T>
bool stored_as(Dtype dtype) {
  if constexpr (std::is_same_v<T, bool>)
    return false;
  else
    return dtype == dtype_of<T>;
}

}  // namespace

Tensor Tensor::detach() const { return make_leaf(spec(), exec::evaluated(*this)); }

void Tensor::to_bytes(void* target, std::size_t bytes) const {
  if (bytes != static_cast<std::size_t>(spec().bytes()))
    throw ShapeError(fmt::format("to_bytes: room for {} bytes, but {} takes {}", bytes, to_string(spec()), spec().bytes()));
  const auto value = exec::evaluated(*this);
  if (bytes == 0) return;
  if (const auto* host = dynamic_cast<const HostValue*>(value.get())) {
    std::memcpy(target, host->bytes.data(), bytes);
    return;
  }
  const auto& placed = dynamic_cast<const exec::DeviceValue&>(*value);
  placed.device->read(*placed.buffer, static_cast<std::size_t>(placed.offset) * size_of(dtype()), target, bytes);
}

struct PendingRead {
  Spec spec;
  ValueCell value;                                 // holds it: nothing is made in its place meanwhile
  std::unique_ptr<ocl::Context::Reading> reading;  // empty: the value is on the host
};

std::shared_ptr<PendingRead> Tensor::start_reading() const {
  auto pending = std::make_shared<PendingRead>();
  pending->spec = spec();
  const auto value = exec::evaluated(*this);
  pending->value.set(value);
  if (const auto* placed = dynamic_cast<const exec::DeviceValue*>(value.get()))
    pending->reading = placed->device->start_reading(*placed->buffer, static_cast<std::size_t>(placed->offset) * size_of(dtype()),
                                                     static_cast<std::size_t>(spec().bytes()));
  return pending;
}

void require_one_element(const PendingRead& pending) {
  if (pending.spec.shape.numel() != 1)
    throw ShapeError(fmt::format("item: needs one element, the tensor is {}", to_string(pending.spec)));
}

bool is_read(const PendingRead& pending) { return !pending.reading || pending.reading->ready(); }

template <class T>
void finish_reading(const PendingRead& pending, T* target) {
  const auto* bytes = pending.reading ? pending.reading->wait() : pending.value.get()->on_host();
  exec::convert(pending.spec.dtype, bytes, target, static_cast<std::size_t>(pending.spec.shape.numel()));
}
template CLNET_API void finish_reading(const PendingRead&, float*);
template CLNET_API void finish_reading(const PendingRead&, double*);
template CLNET_API void finish_reading(const PendingRead&, std::int32_t*);
template CLNET_API void finish_reading(const PendingRead&, std::int64_t*);
template CLNET_API void finish_reading(const PendingRead&, std::int8_t*);
template CLNET_API void finish_reading(const PendingRead&, std::uint8_t*);
template CLNET_API void finish_reading(const PendingRead&, bool*);

template <class T>
void Tensor::read(T* target) const {
  const auto count = static_cast<std::size_t>(numel());
  if (stored_as<T>(dtype())) return to_bytes(target, count * sizeof(T));
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec().bytes()));
  to_bytes(bytes.data(), bytes.size());
  exec::convert(dtype(), bytes.data(), target, count);
}
template CLNET_API void Tensor::read(float*) const;
template CLNET_API void Tensor::read(double*) const;
template CLNET_API void Tensor::read(std::int32_t*) const;
template CLNET_API void Tensor::read(std::int64_t*) const;
template CLNET_API void Tensor::read(std::int8_t*) const;
template CLNET_API void Tensor::read(std::uint8_t*) const;
template CLNET_API void Tensor::read(bool*) const;

}  // namespace clnet

#include "lib/exec/collect/value.h"

#include "lib/cl/driver_lifetime.h"

namespace clnet::exec {

namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

DeviceValue::DeviceValue(std::shared_ptr<ocl::Context> where, ocl::BufferPtr memory, std::int64_t first)
    : id(next_id()), device(std::move(where)), buffer(std::move(memory)), offset(first) {}

void DeviceValue::keep(const Spec& spec, std::shared_ptr<const HostValue> from) {
  constexpr std::size_t most_bytes = 1 << 20;
  if (!is_floating(spec.dtype) && from->bytes.size() <= most_bytes) uploaded = std::move(from);
}

void DeviceValue::set_overwritten() {
  if (!overwritten.exchange(true)) buffer->count(-1);
}

DeviceValue::~DeviceValue() {
  // A forked child has the locks in the state of its parent's threads, and must not free the memory.
  if (auto* made = made_of_it.load(); made && !ocl::drivers_gone()) made->drop(id);
}

}  // namespace clnet::exec

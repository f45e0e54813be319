#include "lib/pocl/children.h"

#include "lib/base/os/process.h"

namespace clnet::pocl {

Children::~Children() {
  // The number of one that has ended may be another's by now.
  running();
  for (const auto& child : running_) os::kill(child.process);
}

void Children::add(std::int64_t process) {
  running_.push_back({process, static_cast<std::uint32_t>(count_)});
  ++count_;
}

std::int64_t Children::running() {
  std::erase_if(running_, [&](const Child& child) {
    const auto state = os::state(child.process);
    // Where the host waits for its children itself, nobody tells how this one ended.
    if (state == os::Child::crashed || state == os::Child::unknown) crashed_.insert(child.number);
    return state != os::Child::runs;
  });
  return static_cast<std::int64_t>(running_.size());
}

}  // namespace clnet::pocl

// Processes that this one has started, by their numbers from 0 on.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace clnet::pocl {

/// Those that run, which are killed at the end.
class Children {
 public:
  Children() = default;
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void add(std::int64_t process);
  std::int64_t count() const { return count_; }
  /// How many still run. The others are forgotten: the host itself may wait for them, and others get their numbers.
  std::int64_t running();
  bool crashed(std::uint32_t number) const { return crashed_.contains(number); }

 private:
  struct Child {
    std::int64_t process;
    std::uint32_t number;
  };
  std::vector<Child> running_;
  std::set<std::uint32_t> crashed_;
  std::int64_t count_ = 0;
};

}  // namespace clnet::pocl

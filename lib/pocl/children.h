// Child processes of this one, by their numbers from 0 on.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace clnet::pocl {

/// The running children; the destructor kills them.
class Children {
 public:
  Children() = default;
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void add(std::int64_t process);
  std::int64_t count() const { return count_; }
  /// The number of running children. Ended ones are forgotten: the host may wait for them itself, and others get their process
  /// ids.
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

// The rules of a plan that a test can switch off, to see that the verifier names what comes of it.
#pragma once

#include <cstdint>

namespace clnet::exec {

enum class Rule : std::uint8_t {
  in_place_dead,          ///< the input's root is not used after the launch
  in_place_whole,         ///< input and output are all of their roots, of equally many elements of the same size
  in_place_alone,         ///< no other argument of the launch touches either root
  in_place_same_element,  ///< the kernel reads exactly the element that it writes
  in_place_once,          ///< a root's memory is handed on once per launch
  cached_stays_inside,    ///< what is returned, under whatever alias, is no cached value
  cached_unchanging,      ///< no cached value is made of what the plan itself changes, or of memory that a caller may write to
  cached_by_source,       ///< a cached value serves who reads the very sources that it was made from
  arguments_set,          ///< an argument counts as set once it is, and the arena as seen once all are
};

/// Whether the rule holds on this thread: it does, but for a WithoutRule.
bool holds(Rule rule);
/// A bit for each rule that does not.
std::uint32_t broken_rules();

class WithoutRule {
 public:
  explicit WithoutRule(Rule rule);
  ~WithoutRule();
  WithoutRule(const WithoutRule&) = delete;
  WithoutRule& operator=(const WithoutRule&) = delete;

 private:
  std::uint32_t before_;
};

}  // namespace clnet::exec

#include "lib/exec/place/rules.h"

namespace clnet::exec {

namespace {
thread_local std::uint32_t broken = 0;
std::uint32_t bit(Rule rule) { return std::uint32_t{1} << static_cast<unsigned>(rule); }
}  // namespace

bool holds(Rule rule) { return (broken & bit(rule)) == 0; }
std::uint32_t broken_rules() { return broken; }

WithoutRule::WithoutRule(Rule rule) : before_(broken) { broken |= bit(rule); }
WithoutRule::~WithoutRule() { broken = before_; }

}  // namespace clnet::exec

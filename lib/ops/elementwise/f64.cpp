#include "lib/ops/elementwise/f64.h"

#include <map>

namespace clnet::ops {

std::string_view f64_expression(std::string_view row, std::string_view expression) {
  static const std::map<std::string_view, std::string_view> expressions{
      {"copysign", "as_double((as_long(a) & 0x7fffffffffffffffL) | (as_long(b) & (long)0x8000000000000000L))"},
      {"deg2rad", "a * 0.017453292519943295"},
      {"gelu_erf", "(a < -1000.0 ? -1000.0 : a) * clnet_normal_cdf(a)"},
      {"gelu_tanh", "(a < -1000.0 ? -1000.0 : a) * clnet_sigmoid(1.5957691216057308 * (a + 0.044715 * a * a * a))"},
      {"hypot",
       "fabs(a) > 1.7976931348623157e308 ? fabs(a) : fabs(b) > 1.7976931348623157e308 ? fabs(b) : a == 0 && b == 0 ? 0.0 : "
       "fabs(a) > fabs(b) ? "
       "fabs(a) * sqrt(1.0 + (b / a) * (b / a)) : fabs(b) * sqrt(1.0 + (a / b) * (a / b))"},
      {"is_finite", "fabs(a) <= 1.7976931348623157e308 ? 1 : 0"},
      {"is_inf", "fabs(a) > 1.7976931348623157e308 ? 1 : 0"},
      {"logaddexp", "a == b ? a + 0.6931471805599453 : (a > b ? a : b) + clnet_log1p(clnet_exp(-fabs(a - b)))"},
      {"logaddexp2", "a == b ? a + 1.0 : (a > b ? a : b) + clnet_log1p(exp2(-fabs(a - b))) * 1.4426950408889634"},
      {"nan_to_num", "a != a ? p0 : a > 1.7976931348623157e308 ? p1 : a < -1.7976931348623157e308 ? p2 : a"},
      {"nextafter", "nextafter(a, b)"},
      {"rad2deg", "a * 57.29577951308232"},
      {"signbit", "as_long(a) < 0 ? 1 : 0"},
      {"silu", "(a < -1000.0 ? -1000.0 : a) * clnet_sigmoid(a)"},
      {"sinc", "a == 0 ? 1.0 : sinpi(a) / (a * 3.141592653589793)"},
      {"softsign", "fabs(a) > 1e300 ? (a > 0 ? 1.0 : -1.0) : a / (1.0 + fabs(a))"},
  };
  const auto found = expressions.find(row);
  return found == expressions.end() ? expression : found->second;
}

}  // namespace clnet::ops

// Tensors as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "clnet/tensor.h"

namespace clnet {

namespace {

constexpr std::int64_t largest_whole = 1000, edge = 3;

/// A tensor's numbers as texts; those that are shown decide together how.
class Numbers {
 public:
  explicit Numbers(const Tensor& tensor) : dtype_(tensor.dtype()) {
    if (is_floating(dtype_))
      floats_ = tensor.to_vector<double>();
    else
      integers_ = tensor.to_vector<std::int64_t>();
  }

  void see(std::size_t i) {
    if (!is_floating(dtype_) || !std::isfinite(floats_[i])) return;
    const double value = std::abs(floats_[i]);
    if (value != std::floor(value)) whole_ = false;
    if (value == 0) return;
    least_ = std::min(least_, value);
    largest_ = std::max(largest_, value);
  }

  std::string text(std::size_t i) const {
    if (dtype_ == Dtype::boolean) return integers_[i] != 0 ? "true" : "false";
    if (!is_floating(dtype_)) return fmt::format("{}", integers_[i]);
    const double value = floats_[i];
    if (!std::isfinite(value)) return std::isnan(value) ? "nan" : fmt::format("{}", value);
    if (largest_ > 0 && (largest_ >= 1e8 || least_ < 1e-4 || (!whole_ && largest_ / least_ > 1e3)))
      return fmt::format("{:.4e}", value);
    return whole_ ? fmt::format("{:.0f}.", value) : fmt::format("{:.4f}", value);
  }

 private:
  Dtype dtype_;
  std::vector<double> floats_;
  std::vector<std::int64_t> integers_;
  bool whole_ = true;
  double least_ = INFINITY, largest_ = 0;
};

class Printer {
 public:
  explicit Printer(const Tensor& tensor) : shape_(tensor.shape()), numbers_(tensor), shortened_(shape_.numel() > largest_whole) {
    visit(0, 0, [&](std::size_t at) { numbers_.see(at); });
    visit(0, 0, [&](std::size_t at) { width_ = std::max(width_, numbers_.text(at).size()); });
  }

  std::string text(int dim = 0, std::int64_t from = 0) const {
    if (dim == shape_.rank()) return fmt::format("{:>{}}", numbers_.text(static_cast<std::size_t>(from)), width_);
    const auto separator = dim + 1 == shape_.rank() ? std::string(", ")
                                                    : "," + std::string(static_cast<std::size_t>(shape_.rank() - dim - 1), '\n') +
                                                          std::string(static_cast<std::size_t>(dim + 1), ' ');
    std::string result = "[";
    for (std::int64_t i = 0; i < shape_[dim]; ++i) {
      if (i > 0) result += separator;
      if (left_out(dim, i)) {
        result += "...";
        i = shape_[dim] - edge - 1;
      } else {
        result += text(dim + 1, from * shape_[dim] + i);
      }
    }
    return result + "]";
  }

 private:
  bool left_out(int dim, std::int64_t i) const {
    return shortened_ && shape_[dim] > 2 * edge && i >= edge && i < shape_[dim] - edge;
  }

  template <class See>
  void visit(int dim, std::int64_t from, const See& see) const {
    if (dim == shape_.rank()) return see(static_cast<std::size_t>(from));
    for (std::int64_t i = 0; i < shape_[dim]; ++i)
      if (!left_out(dim, i)) visit(dim + 1, from * shape_[dim] + i, see);
  }

  Shape shape_;
  Numbers numbers_;
  bool shortened_;
  std::size_t width_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "undefined";
  return out << Printer(tensor).text() << ' ' << to_string(tensor.spec());
}

}  // namespace clnet

// Made from the catalogue of operations: see include/clnet/tensor_methods.inc.
#include "clnet/ops.h"

namespace clnet {

// clang-format off
Tensor Tensor::abs() const { return clnet::abs(*this); }
Tensor Tensor::addcdiv(const Tensor& a, const Tensor& b, double value) const { return clnet::addcdiv(*this, a, b, value); }
Tensor Tensor::addcmul(const Tensor& a, const Tensor& b, double value) const { return clnet::addcmul(*this, a, b, value); }
Tensor Tensor::addmm(const Tensor& a, const Tensor& b, double beta, double alpha) const { return clnet::addmm(*this, a, b, beta, alpha); }
Tensor Tensor::all(const Dims& dims, bool keepdim) const { return clnet::all(*this, dims, keepdim); }
Tensor Tensor::any(const Dims& dims, bool keepdim) const { return clnet::any(*this, dims, keepdim); }
Tensor Tensor::argmax(int dim, bool keepdim) const { return clnet::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin(int dim, bool keepdim) const { return clnet::argmin(*this, dim, keepdim); }
Tensor Tensor::argsort(int dim, bool descending) const { return clnet::argsort(*this, dim, descending); }
Tensor Tensor::atan2(const Tensor& b) const { return clnet::atan2(*this, b); }
Tensor Tensor::atan2(double b) const { return clnet::atan2(*this, b); }
Tensor Tensor::ceil() const { return clnet::ceil(*this); }
Tensor Tensor::clamp(double low, double high) const { return clnet::clamp(*this, low, high); }
Tensor Tensor::cos() const { return clnet::cos(*this); }
Tensor Tensor::cumprod(int dim) const { return clnet::cumprod(*this, dim); }
Tensor Tensor::cumsum(int dim) const { return clnet::cumsum(*this, dim); }
Tensor Tensor::diag(std::int64_t offset) const { return clnet::diag(*this, offset); }
Tensor Tensor::diagonal(std::int64_t offset, int dim1, int dim2) const { return clnet::diagonal(*this, offset, dim1, dim2); }
Tensor Tensor::eq(const Tensor& b) const { return clnet::eq(*this, b); }
Tensor Tensor::eq(double b) const { return clnet::eq(*this, b); }
Tensor Tensor::erf() const { return clnet::erf(*this); }
Tensor Tensor::exp() const { return clnet::exp(*this); }
Tensor Tensor::expand(const Shape& shape) const { return clnet::expand(*this, shape); }
Tensor Tensor::expm1() const { return clnet::expm1(*this); }
Tensor Tensor::flatten(int first, int last) const { return clnet::flatten(*this, first, last); }
Tensor Tensor::flip(const Dims& dims) const { return clnet::flip(*this, dims); }
Tensor Tensor::floor() const { return clnet::floor(*this); }
Tensor Tensor::fmod(const Tensor& b) const { return clnet::fmod(*this, b); }
Tensor Tensor::fmod(double b) const { return clnet::fmod(*this, b); }
Tensor Tensor::frac() const { return clnet::frac(*this); }
Tensor Tensor::gather(int dim, const Tensor& indices) const { return clnet::gather(*this, dim, indices); }
Tensor Tensor::greater(const Tensor& b) const { return clnet::greater(*this, b); }
Tensor Tensor::greater(double b) const { return clnet::greater(*this, b); }
Tensor Tensor::greater_equal(const Tensor& b) const { return clnet::greater_equal(*this, b); }
Tensor Tensor::greater_equal(double b) const { return clnet::greater_equal(*this, b); }
Tensor Tensor::hardshrink(double lambda) const { return clnet::hardshrink(*this, lambda); }
Tensor Tensor::hardshrink() const { return clnet::hardshrink(*this); }
Tensor Tensor::hypot(const Tensor& b) const { return clnet::hypot(*this, b); }
Tensor Tensor::hypot(double b) const { return clnet::hypot(*this, b); }
Tensor Tensor::index_add(int dim, const Tensor& indices, const Tensor& source, double alpha) const { return clnet::index_add(*this, dim, indices, source, alpha); }
Tensor Tensor::index_select(int dim, const Tensor& indices) const { return clnet::index_select(*this, dim, indices); }
Tensor Tensor::is_nan() const { return clnet::is_nan(*this); }
Tensor Tensor::lerp(const Tensor& b, double weight) const { return clnet::lerp(*this, b, weight); }
Tensor Tensor::lerp(const Tensor& b, const Tensor& weight) const { return clnet::lerp(*this, b, weight); }
Tensor Tensor::less(const Tensor& b) const { return clnet::less(*this, b); }
Tensor Tensor::less(double b) const { return clnet::less(*this, b); }
Tensor Tensor::less_equal(const Tensor& b) const { return clnet::less_equal(*this, b); }
Tensor Tensor::less_equal(double b) const { return clnet::less_equal(*this, b); }
Tensor Tensor::log() const { return clnet::log(*this); }
Tensor Tensor::log1p() const { return clnet::log1p(*this); }
Tensor Tensor::log2() const { return clnet::log2(*this); }
Tensor Tensor::log_softmax(int dim) const { return clnet::log_softmax(*this, dim); }
Tensor Tensor::logaddexp(const Tensor& b) const { return clnet::logaddexp(*this, b); }
Tensor Tensor::logaddexp(double b) const { return clnet::logaddexp(*this, b); }
Tensor Tensor::logical_and(const Tensor& b) const { return clnet::logical_and(*this, b); }
Tensor Tensor::logical_not() const { return clnet::logical_not(*this); }
Tensor Tensor::logical_or(const Tensor& b) const { return clnet::logical_or(*this, b); }
Tensor Tensor::logsumexp(const Dims& dims, bool keepdim) const { return clnet::logsumexp(*this, dims, keepdim); }
Tensor Tensor::masked_fill(const Tensor& mask, double value) const { return clnet::masked_fill(*this, mask, value); }
Tensor Tensor::matmul(const Tensor& b) const { return clnet::matmul(*this, b); }
Tensor Tensor::matmul(const Tensor& b, const MatmulOptions& options) const { return clnet::matmul(*this, b, options); }
Tensor Tensor::max(const Dims& dims, bool keepdim) const { return clnet::max(*this, dims, keepdim); }
Tensor Tensor::maximum(const Tensor& b) const { return clnet::maximum(*this, b); }
Tensor Tensor::maximum(double b) const { return clnet::maximum(*this, b); }
Tensor Tensor::mean(const Dims& dims, bool keepdim) const { return clnet::mean(*this, dims, keepdim); }
Tensor Tensor::min(const Dims& dims, bool keepdim) const { return clnet::min(*this, dims, keepdim); }
Tensor Tensor::minimum(const Tensor& b) const { return clnet::minimum(*this, b); }
Tensor Tensor::minimum(double b) const { return clnet::minimum(*this, b); }
Tensor Tensor::nan_to_num(double nan, std::optional<double> positive, std::optional<double> negative) const { return clnet::nan_to_num(*this, nan, positive, negative); }
Tensor Tensor::narrow(int dim, const Tensor& start, std::int64_t length) const { return clnet::narrow(*this, dim, start, length); }
Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const { return clnet::narrow(*this, dim, start, length); }
Tensor Tensor::norm(double p, const Dims& dims, bool keepdim) const { return clnet::norm(*this, p, dims, keepdim); }
Tensor Tensor::not_equal(const Tensor& b) const { return clnet::not_equal(*this, b); }
Tensor Tensor::not_equal(double b) const { return clnet::not_equal(*this, b); }
Tensor Tensor::outer(const Tensor& b) const { return clnet::outer(*this, b); }
Tensor Tensor::permute(const std::vector<int>& dims) const { return clnet::permute(*this, dims); }
Tensor Tensor::pow(const Tensor& b) const { return clnet::pow(*this, b); }
Tensor Tensor::pow(double b) const { return clnet::pow(*this, b); }
Tensor Tensor::prelu(const Tensor& weight) const { return clnet::prelu(*this, weight); }
Tensor Tensor::prod(const Dims& dims, bool keepdim) const { return clnet::prod(*this, dims, keepdim); }
Tensor Tensor::reciprocal() const { return clnet::reciprocal(*this); }
Tensor Tensor::relu() const { return clnet::relu(*this); }
Tensor Tensor::repeat(const std::vector<std::int64_t>& repeats) const { return clnet::repeat(*this, repeats); }
Tensor Tensor::repeat_interleave(std::int64_t repeats, int dim) const { return clnet::repeat_interleave(*this, repeats, dim); }
Tensor Tensor::reshape(const std::vector<std::int64_t>& extents) const { return clnet::reshape(*this, extents); }
Tensor Tensor::reshape(std::initializer_list<std::int64_t> extents) const { return clnet::reshape(*this, extents); }
Tensor Tensor::reshape(const Shape& shape) const { return clnet::reshape(*this, shape); }
Tensor Tensor::roll(const std::vector<std::int64_t>& shifts, const Dims& dims) const { return clnet::roll(*this, shifts, dims); }
Tensor Tensor::round() const { return clnet::round(*this); }
Tensor Tensor::rsqrt() const { return clnet::rsqrt(*this); }
Tensor Tensor::scatter(int dim, const Tensor& indices, const Tensor& source) const { return clnet::scatter(*this, dim, indices, source); }
Tensor Tensor::scatter(int dim, const Tensor& indices, double value) const { return clnet::scatter(*this, dim, indices, value); }
Tensor Tensor::scatter_add(int dim, const Tensor& indices, const Tensor& source) const { return clnet::scatter_add(*this, dim, indices, source); }
Tensor Tensor::scatter_reduce(int dim, const Tensor& indices, const Tensor& source, ScatterReduction reduction, bool include_self) const { return clnet::scatter_reduce(*this, dim, indices, source, reduction, include_self); }
Tensor Tensor::sigmoid() const { return clnet::sigmoid(*this); }
Tensor Tensor::sign() const { return clnet::sign(*this); }
Tensor Tensor::sin() const { return clnet::sin(*this); }
Tensor Tensor::slice_update(int dim, const Tensor& start, const Tensor& value) const { return clnet::slice_update(*this, dim, start, value); }
Tensor Tensor::slice_update(int dim, std::int64_t start, const Tensor& value) const { return clnet::slice_update(*this, dim, start, value); }
Tensor Tensor::softmax(int dim) const { return clnet::softmax(*this, dim); }
SortResult Tensor::sort(int dim, bool descending) const { return clnet::sort(*this, dim, descending); }
std::vector<Tensor> Tensor::split(const std::vector<std::int64_t>& lengths, int dim) const { return clnet::split(*this, lengths, dim); }
Tensor Tensor::sqrt() const { return clnet::sqrt(*this); }
Tensor Tensor::square() const { return clnet::square(*this); }
Tensor Tensor::squeeze(int dim) const { return clnet::squeeze(*this, dim); }
Tensor Tensor::stddev(const Dims& dims, int correction, bool keepdim) const { return clnet::stddev(*this, dims, correction, keepdim); }
Tensor Tensor::sum(const Dims& dims, bool keepdim) const { return clnet::sum(*this, dims, keepdim); }
Tensor Tensor::sum_to(const Shape& shape) const { return clnet::sum_to(*this, shape); }
Tensor Tensor::tanh() const { return clnet::tanh(*this); }
Tensor Tensor::tile(const std::vector<std::int64_t>& repeats) const { return clnet::tile(*this, repeats); }
Tensor Tensor::to(Dtype dtype) const { return clnet::cast(*this, dtype); }
SortResult Tensor::topk(std::int64_t k, int dim, bool largest) const { return clnet::topk(*this, k, dim, largest); }
Tensor Tensor::trace() const { return clnet::trace(*this); }
Tensor Tensor::transpose(int dim0, int dim1) const { return clnet::transpose(*this, dim0, dim1); }
Tensor Tensor::tril(std::int64_t diagonal) const { return clnet::tril(*this, diagonal); }
Tensor Tensor::triu(std::int64_t diagonal) const { return clnet::triu(*this, diagonal); }
Tensor Tensor::trunc() const { return clnet::trunc(*this); }
Tensor Tensor::unsqueeze(int dim) const { return clnet::unsqueeze(*this, dim); }
Tensor Tensor::var(const Dims& dims, int correction, bool keepdim) const { return clnet::var(*this, dims, correction, keepdim); }
Tensor Tensor::xlogy(const Tensor& b) const { return clnet::xlogy(*this, b); }
Tensor Tensor::xlogy(double b) const { return clnet::xlogy(*this, b); }
// clang-format on

}  // namespace clnet

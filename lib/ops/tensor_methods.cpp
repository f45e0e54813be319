// Made from the catalogue of operations: see include/clnet/tensor_methods.inc.
#include "clnet/ops.h"

namespace clnet {

// clang-format off
Tensor Tensor::abs() const { return clnet::abs(*this); }
Tensor Tensor::acos() const { return clnet::acos(*this); }
Tensor Tensor::acosh() const { return clnet::acosh(*this); }
Tensor Tensor::addbmm(const Tensor& a, const Tensor& b, double beta, double alpha) const { return clnet::addbmm(*this, a, b, beta, alpha); }
Tensor Tensor::addcdiv(const Tensor& a, const Tensor& b, double value) const { return clnet::addcdiv(*this, a, b, value); }
Tensor Tensor::addcmul(const Tensor& a, const Tensor& b, double value) const { return clnet::addcmul(*this, a, b, value); }
Tensor Tensor::addmm(const Tensor& a, const Tensor& b, double beta, double alpha) const { return clnet::addmm(*this, a, b, beta, alpha); }
Tensor Tensor::addmv(const Tensor& a, const Tensor& b, double beta, double alpha) const { return clnet::addmv(*this, a, b, beta, alpha); }
Tensor Tensor::addr(const Tensor& a, const Tensor& b, double beta, double alpha) const { return clnet::addr(*this, a, b, beta, alpha); }
Tensor Tensor::all(const Dims& dims, bool keepdim) const { return clnet::all(*this, dims, keepdim); }
MinMax Tensor::aminmax(const Dims& dims, bool keepdim) const { return clnet::aminmax(*this, dims, keepdim); }
Tensor Tensor::any(const Dims& dims, bool keepdim) const { return clnet::any(*this, dims, keepdim); }
Tensor Tensor::argmax(int dim, bool keepdim) const { return clnet::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin(int dim, bool keepdim) const { return clnet::argmin(*this, dim, keepdim); }
Tensor Tensor::argsort(int dim, bool descending) const { return clnet::argsort(*this, dim, descending); }
Tensor Tensor::argwhere() const { return clnet::argwhere(*this); }
Tensor Tensor::asin() const { return clnet::asin(*this); }
Tensor Tensor::asinh() const { return clnet::asinh(*this); }
Tensor Tensor::atan() const { return clnet::atan(*this); }
Tensor Tensor::atan2(const Tensor& b) const { return clnet::atan2(*this, b); }
Tensor Tensor::atan2(double b) const { return clnet::atan2(*this, b); }
Tensor Tensor::atanh() const { return clnet::atanh(*this); }
Tensor Tensor::baddbmm(const Tensor& a, const Tensor& b, double beta, double alpha) const { return clnet::baddbmm(*this, a, b, beta, alpha); }
Tensor Tensor::bitwise_and(const Tensor& b) const { return clnet::bitwise_and(*this, b); }
Tensor Tensor::bitwise_and(double b) const { return clnet::bitwise_and(*this, b); }
Tensor Tensor::bitwise_left_shift(const Tensor& b) const { return clnet::bitwise_left_shift(*this, b); }
Tensor Tensor::bitwise_left_shift(double b) const { return clnet::bitwise_left_shift(*this, b); }
Tensor Tensor::bitwise_not() const { return clnet::bitwise_not(*this); }
Tensor Tensor::bitwise_or(const Tensor& b) const { return clnet::bitwise_or(*this, b); }
Tensor Tensor::bitwise_or(double b) const { return clnet::bitwise_or(*this, b); }
Tensor Tensor::bitwise_right_shift(const Tensor& b) const { return clnet::bitwise_right_shift(*this, b); }
Tensor Tensor::bitwise_right_shift(double b) const { return clnet::bitwise_right_shift(*this, b); }
Tensor Tensor::bitwise_xor(const Tensor& b) const { return clnet::bitwise_xor(*this, b); }
Tensor Tensor::bitwise_xor(double b) const { return clnet::bitwise_xor(*this, b); }
Tensor Tensor::bmm(const Tensor& b) const { return clnet::bmm(*this, b); }
Tensor Tensor::ceil() const { return clnet::ceil(*this); }
std::vector<Tensor> Tensor::chunk(std::int64_t chunks, int dim) const { return clnet::chunk(*this, chunks, dim); }
Tensor Tensor::clamp(double low, double high) const { return clnet::clamp(*this, low, high); }
Tensor Tensor::copysign(const Tensor& b) const { return clnet::copysign(*this, b); }
Tensor Tensor::copysign(double b) const { return clnet::copysign(*this, b); }
Tensor Tensor::cos() const { return clnet::cos(*this); }
Tensor Tensor::cosh() const { return clnet::cosh(*this); }
Tensor Tensor::count_nonzero(const Dims& dims, bool keepdim) const { return clnet::count_nonzero(*this, dims, keepdim); }
Tensor Tensor::cross(const Tensor& b, int dim) const { return clnet::cross(*this, b, dim); }
SortResult Tensor::cummax(int dim) const { return clnet::cummax(*this, dim); }
SortResult Tensor::cummin(int dim) const { return clnet::cummin(*this, dim); }
Tensor Tensor::cumprod(int dim) const { return clnet::cumprod(*this, dim); }
Tensor Tensor::cumsum(int dim) const { return clnet::cumsum(*this, dim); }
Tensor Tensor::deg2rad() const { return clnet::deg2rad(*this); }
Tensor Tensor::diag(std::int64_t offset) const { return clnet::diag(*this, offset); }
Tensor Tensor::diag_embed(std::int64_t offset, int dim1, int dim2) const { return clnet::diag_embed(*this, offset, dim1, dim2); }
Tensor Tensor::diagonal(std::int64_t offset, int dim1, int dim2) const { return clnet::diagonal(*this, offset, dim1, dim2); }
Tensor Tensor::diff(int order, int dim) const { return clnet::diff(*this, order, dim); }
Tensor Tensor::digamma() const { return clnet::digamma(*this); }
Tensor Tensor::distance(const Tensor& b, double p) const { return clnet::distance(*this, b, p); }
Tensor Tensor::dot(const Tensor& b) const { return clnet::dot(*this, b); }
Tensor Tensor::eq(const Tensor& b) const { return clnet::eq(*this, b); }
Tensor Tensor::eq(double b) const { return clnet::eq(*this, b); }
Tensor Tensor::erf() const { return clnet::erf(*this); }
Tensor Tensor::erfc() const { return clnet::erfc(*this); }
Tensor Tensor::erfinv() const { return clnet::erfinv(*this); }
Tensor Tensor::exp() const { return clnet::exp(*this); }
Tensor Tensor::exp2() const { return clnet::exp2(*this); }
Tensor Tensor::expand(const Shape& shape) const { return clnet::expand(*this, shape); }
Tensor Tensor::expm1() const { return clnet::expm1(*this); }
Tensor Tensor::flatten(int first, int last) const { return clnet::flatten(*this, first, last); }
Tensor Tensor::flip(const Dims& dims) const { return clnet::flip(*this, dims); }
Tensor Tensor::fliplr() const { return clnet::fliplr(*this); }
Tensor Tensor::flipud() const { return clnet::flipud(*this); }
Tensor Tensor::floor() const { return clnet::floor(*this); }
Tensor Tensor::floor_divide(const Tensor& b) const { return clnet::floor_divide(*this, b); }
Tensor Tensor::floor_divide(double b) const { return clnet::floor_divide(*this, b); }
Tensor Tensor::fmax(const Tensor& b) const { return clnet::fmax(*this, b); }
Tensor Tensor::fmax(double b) const { return clnet::fmax(*this, b); }
Tensor Tensor::fmin(const Tensor& b) const { return clnet::fmin(*this, b); }
Tensor Tensor::fmin(double b) const { return clnet::fmin(*this, b); }
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
Tensor Tensor::heaviside(const Tensor& b) const { return clnet::heaviside(*this, b); }
Tensor Tensor::heaviside(double b) const { return clnet::heaviside(*this, b); }
Tensor Tensor::histc(std::int64_t bins, double low, double high) const { return clnet::histc(*this, bins, low, high); }
Tensor Tensor::hypot(const Tensor& b) const { return clnet::hypot(*this, b); }
Tensor Tensor::hypot(double b) const { return clnet::hypot(*this, b); }
Tensor Tensor::i0() const { return clnet::i0(*this); }
Tensor Tensor::i1() const { return clnet::i1(*this); }
Tensor Tensor::index_add(int dim, const Tensor& indices, const Tensor& source, double alpha) const { return clnet::index_add(*this, dim, indices, source, alpha); }
Tensor Tensor::index_copy(int dim, const Tensor& indices, const Tensor& source) const { return clnet::index_copy(*this, dim, indices, source); }
Tensor Tensor::index_fill(int dim, const Tensor& indices, double value) const { return clnet::index_fill(*this, dim, indices, value); }
Tensor Tensor::index_select(int dim, const Tensor& indices) const { return clnet::index_select(*this, dim, indices); }
Tensor Tensor::inner(const Tensor& b) const { return clnet::inner(*this, b); }
Tensor Tensor::is_close(const Tensor& b, double rtol, double atol, bool equal_nan) const { return clnet::is_close(*this, b, rtol, atol, equal_nan); }
Tensor Tensor::is_finite() const { return clnet::is_finite(*this); }
Tensor Tensor::is_inf() const { return clnet::is_inf(*this); }
Tensor Tensor::is_nan() const { return clnet::is_nan(*this); }
Tensor Tensor::kron(const Tensor& b) const { return clnet::kron(*this, b); }
SortResult Tensor::kthvalue(std::int64_t k, int dim, bool keepdim) const { return clnet::kthvalue(*this, k, dim, keepdim); }
Tensor Tensor::lerp(const Tensor& b, double weight) const { return clnet::lerp(*this, b, weight); }
Tensor Tensor::lerp(const Tensor& b, const Tensor& weight) const { return clnet::lerp(*this, b, weight); }
Tensor Tensor::less(const Tensor& b) const { return clnet::less(*this, b); }
Tensor Tensor::less(double b) const { return clnet::less(*this, b); }
Tensor Tensor::less_equal(const Tensor& b) const { return clnet::less_equal(*this, b); }
Tensor Tensor::less_equal(double b) const { return clnet::less_equal(*this, b); }
Tensor Tensor::lgamma() const { return clnet::lgamma(*this); }
Tensor Tensor::log() const { return clnet::log(*this); }
Tensor Tensor::log10() const { return clnet::log10(*this); }
Tensor Tensor::log1p() const { return clnet::log1p(*this); }
Tensor Tensor::log2() const { return clnet::log2(*this); }
Tensor Tensor::log_softmax(int dim) const { return clnet::log_softmax(*this, dim); }
Tensor Tensor::logaddexp(const Tensor& b) const { return clnet::logaddexp(*this, b); }
Tensor Tensor::logaddexp(double b) const { return clnet::logaddexp(*this, b); }
Tensor Tensor::logaddexp2(const Tensor& b) const { return clnet::logaddexp2(*this, b); }
Tensor Tensor::logaddexp2(double b) const { return clnet::logaddexp2(*this, b); }
Tensor Tensor::logcumsumexp(int dim) const { return clnet::logcumsumexp(*this, dim); }
Tensor Tensor::logical_and(const Tensor& b) const { return clnet::logical_and(*this, b); }
Tensor Tensor::logical_not() const { return clnet::logical_not(*this); }
Tensor Tensor::logical_or(const Tensor& b) const { return clnet::logical_or(*this, b); }
Tensor Tensor::logical_xor(const Tensor& b) const { return clnet::logical_xor(*this, b); }
Tensor Tensor::logit() const { return clnet::logit(*this); }
Tensor Tensor::logit(double eps) const { return clnet::logit(*this, eps); }
Tensor Tensor::logsumexp(const Dims& dims, bool keepdim) const { return clnet::logsumexp(*this, dims, keepdim); }
Tensor Tensor::masked_fill(const Tensor& mask, double value) const { return clnet::masked_fill(*this, mask, value); }
Tensor Tensor::masked_select(const Tensor& mask) const { return clnet::masked_select(*this, mask); }
Tensor Tensor::matmul(const Tensor& b) const { return clnet::matmul(*this, b); }
Tensor Tensor::matmul(const Tensor& b, const MatmulOptions& options) const { return clnet::matmul(*this, b, options); }
Tensor Tensor::max(const Dims& dims, bool keepdim) const { return clnet::max(*this, dims, keepdim); }
Tensor Tensor::maximum(const Tensor& b) const { return clnet::maximum(*this, b); }
Tensor Tensor::maximum(double b) const { return clnet::maximum(*this, b); }
Tensor Tensor::mean(const Dims& dims, bool keepdim) const { return clnet::mean(*this, dims, keepdim); }
SortResult Tensor::median(int dim, bool keepdim) const { return clnet::median(*this, dim, keepdim); }
Tensor Tensor::median() const { return clnet::median(*this); }
Tensor Tensor::min(const Dims& dims, bool keepdim) const { return clnet::min(*this, dims, keepdim); }
Tensor Tensor::minimum(const Tensor& b) const { return clnet::minimum(*this, b); }
Tensor Tensor::minimum(double b) const { return clnet::minimum(*this, b); }
Tensor Tensor::mm(const Tensor& b) const { return clnet::mm(*this, b); }
SortResult Tensor::mode(int dim, bool keepdim) const { return clnet::mode(*this, dim, keepdim); }
Tensor Tensor::movedim(const Dims& sources, const Dims& destinations) const { return clnet::movedim(*this, sources, destinations); }
Tensor Tensor::movedim(int source, int destination) const { return clnet::movedim(*this, source, destination); }
Tensor Tensor::msort() const { return clnet::msort(*this); }
Tensor Tensor::mv(const Tensor& b) const { return clnet::mv(*this, b); }
Tensor Tensor::nan_to_num(double nan, std::optional<double> positive, std::optional<double> negative) const { return clnet::nan_to_num(*this, nan, positive, negative); }
Tensor Tensor::nanmean(const Dims& dims, bool keepdim) const { return clnet::nanmean(*this, dims, keepdim); }
SortResult Tensor::nanmedian(int dim, bool keepdim) const { return clnet::nanmedian(*this, dim, keepdim); }
Tensor Tensor::nansum(const Dims& dims, bool keepdim) const { return clnet::nansum(*this, dims, keepdim); }
Tensor Tensor::narrow(int dim, const Tensor& start, std::int64_t length) const { return clnet::narrow(*this, dim, start, length); }
Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const { return clnet::narrow(*this, dim, start, length); }
Tensor Tensor::nextafter(const Tensor& b) const { return clnet::nextafter(*this, b); }
Tensor Tensor::nonzero() const { return clnet::nonzero(*this); }
Tensor Tensor::norm(double p, const Dims& dims, bool keepdim) const { return clnet::norm(*this, p, dims, keepdim); }
Tensor Tensor::not_equal(const Tensor& b) const { return clnet::not_equal(*this, b); }
Tensor Tensor::not_equal(double b) const { return clnet::not_equal(*this, b); }
Tensor Tensor::outer(const Tensor& b) const { return clnet::outer(*this, b); }
Tensor Tensor::permute(const std::vector<int>& dims) const { return clnet::permute(*this, dims); }
Tensor Tensor::pow(const Tensor& b) const { return clnet::pow(*this, b); }
Tensor Tensor::pow(double b) const { return clnet::pow(*this, b); }
Tensor Tensor::prelu(const Tensor& weight) const { return clnet::prelu(*this, weight); }
Tensor Tensor::prod(const Dims& dims, bool keepdim) const { return clnet::prod(*this, dims, keepdim); }
Tensor Tensor::rad2deg() const { return clnet::rad2deg(*this); }
Tensor Tensor::reciprocal() const { return clnet::reciprocal(*this); }
Tensor Tensor::relu() const { return clnet::relu(*this); }
Tensor Tensor::remainder(const Tensor& b) const { return clnet::remainder(*this, b); }
Tensor Tensor::remainder(double b) const { return clnet::remainder(*this, b); }
Tensor Tensor::repeat(const std::vector<std::int64_t>& repeats) const { return clnet::repeat(*this, repeats); }
Tensor Tensor::repeat_interleave(std::int64_t repeats, int dim) const { return clnet::repeat_interleave(*this, repeats, dim); }
Tensor Tensor::reshape(const std::vector<std::int64_t>& extents) const { return clnet::reshape(*this, extents); }
Tensor Tensor::reshape(std::initializer_list<std::int64_t> extents) const { return clnet::reshape(*this, extents); }
Tensor Tensor::reshape(const Shape& shape) const { return clnet::reshape(*this, shape); }
Tensor Tensor::roll(const std::vector<std::int64_t>& shifts, const Dims& dims) const { return clnet::roll(*this, shifts, dims); }
Tensor Tensor::rot90(int times, const Dims& dims) const { return clnet::rot90(*this, times, dims); }
Tensor Tensor::rot90(int times) const { return clnet::rot90(*this, times); }
Tensor Tensor::round() const { return clnet::round(*this); }
Tensor Tensor::rsqrt() const { return clnet::rsqrt(*this); }
Tensor Tensor::scatter(int dim, const Tensor& indices, const Tensor& source) const { return clnet::scatter(*this, dim, indices, source); }
Tensor Tensor::scatter(int dim, const Tensor& indices, double value) const { return clnet::scatter(*this, dim, indices, value); }
Tensor Tensor::scatter_add(int dim, const Tensor& indices, const Tensor& source) const { return clnet::scatter_add(*this, dim, indices, source); }
Tensor Tensor::scatter_reduce(int dim, const Tensor& indices, const Tensor& source, ScatterReduction reduction, bool include_self) const { return clnet::scatter_reduce(*this, dim, indices, source, reduction, include_self); }
Tensor Tensor::select(int dim, std::int64_t index) const { return clnet::select(*this, dim, index); }
Tensor Tensor::sigmoid() const { return clnet::sigmoid(*this); }
Tensor Tensor::sign() const { return clnet::sign(*this); }
Tensor Tensor::signbit() const { return clnet::signbit(*this); }
Tensor Tensor::sin() const { return clnet::sin(*this); }
Tensor Tensor::sinc() const { return clnet::sinc(*this); }
Tensor Tensor::sinh() const { return clnet::sinh(*this); }
Tensor Tensor::slice_update(int dim, const Tensor& start, const Tensor& value) const { return clnet::slice_update(*this, dim, start, value); }
Tensor Tensor::slice_update(int dim, std::int64_t start, const Tensor& value) const { return clnet::slice_update(*this, dim, start, value); }
Tensor Tensor::softmax(int dim) const { return clnet::softmax(*this, dim); }
SortResult Tensor::sort(int dim, bool descending) const { return clnet::sort(*this, dim, descending); }
std::vector<Tensor> Tensor::split(const std::vector<std::int64_t>& lengths, int dim) const { return clnet::split(*this, lengths, dim); }
std::vector<Tensor> Tensor::split(std::int64_t length, int dim) const { return clnet::split(*this, length, dim); }
Tensor Tensor::sqrt() const { return clnet::sqrt(*this); }
Tensor Tensor::square() const { return clnet::square(*this); }
Tensor Tensor::squeeze(int dim) const { return clnet::squeeze(*this, dim); }
Tensor Tensor::squeeze() const { return clnet::squeeze(*this); }
Tensor Tensor::stddev(const Dims& dims, int correction, bool keepdim) const { return clnet::stddev(*this, dims, correction, keepdim); }
Tensor Tensor::sum(const Dims& dims, bool keepdim) const { return clnet::sum(*this, dims, keepdim); }
Tensor Tensor::sum_to(const Shape& shape) const { return clnet::sum_to(*this, shape); }
Tensor Tensor::take(const Tensor& indices) const { return clnet::take(*this, indices); }
Tensor Tensor::take_along_dim(const Tensor& indices, std::optional<int> dim) const { return clnet::take_along_dim(*this, indices, dim); }
Tensor Tensor::tan() const { return clnet::tan(*this); }
Tensor Tensor::tanh() const { return clnet::tanh(*this); }
std::vector<Tensor> Tensor::tensor_split(std::int64_t sections, int dim) const { return clnet::tensor_split(*this, sections, dim); }
std::vector<Tensor> Tensor::tensor_split(const std::vector<std::int64_t>& places, int dim) const { return clnet::tensor_split(*this, places, dim); }
Tensor Tensor::tile(const std::vector<std::int64_t>& repeats) const { return clnet::tile(*this, repeats); }
Tensor Tensor::to(Dtype dtype) const { return clnet::cast(*this, dtype); }
SortResult Tensor::topk(std::int64_t k, int dim, bool largest) const { return clnet::topk(*this, k, dim, largest); }
Tensor Tensor::trace() const { return clnet::trace(*this); }
Tensor Tensor::transpose(int dim0, int dim1) const { return clnet::transpose(*this, dim0, dim1); }
Tensor Tensor::tril(std::int64_t diagonal) const { return clnet::tril(*this, diagonal); }
Tensor Tensor::triu(std::int64_t diagonal) const { return clnet::triu(*this, diagonal); }
Tensor Tensor::trunc() const { return clnet::trunc(*this); }
std::vector<Tensor> Tensor::unbind(int dim) const { return clnet::unbind(*this, dim); }
Tensor Tensor::unflatten(int dim, const std::vector<std::int64_t>& extents) const { return clnet::unflatten(*this, dim, extents); }
UniqueResult Tensor::unique() const { return clnet::unique(*this); }
UniqueResult Tensor::unique(int dim) const { return clnet::unique(*this, dim); }
UniqueResult Tensor::unique_consecutive() const { return clnet::unique_consecutive(*this); }
UniqueResult Tensor::unique_consecutive(int dim) const { return clnet::unique_consecutive(*this, dim); }
Tensor Tensor::unsqueeze(int dim) const { return clnet::unsqueeze(*this, dim); }
Tensor Tensor::var(const Dims& dims, int correction, bool keepdim) const { return clnet::var(*this, dims, correction, keepdim); }
Tensor Tensor::xlog1py(const Tensor& b) const { return clnet::xlog1py(*this, b); }
Tensor Tensor::xlog1py(double b) const { return clnet::xlog1py(*this, b); }
Tensor Tensor::xlogy(const Tensor& b) const { return clnet::xlogy(*this, b); }
Tensor Tensor::xlogy(double b) const { return clnet::xlogy(*this, b); }
// clang-format on

}  // namespace clnet

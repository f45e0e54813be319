// Random calls of the operations that make tensors from numbers.
#include <fmt/format.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

bool add_made(Generator& g, std::string_view name, Tensor (*make)(const Shape&, Dtype), Range range) {
  const auto shape = g.shape(static_cast<int>(g.choose().integer(0, 3)));
  const auto dtype = g.float_dtype();
  g.add(
      std::string(name), fmt::format("{}({}, Dtype::{})", name, to_code(shape), to_string(dtype)), {},
      [=](const Tensors&) { return make(shape, dtype); }, range);
  return true;
}

bool add_full(Generator& g) {
  const auto shape = g.shape(static_cast<int>(g.choose().integer(0, 3)));
  const auto dtype = g.float_dtype();
  const double value = g.choose().of({0.5, -1.25, 3.0});
  g.add("full", fmt::format("full({}, {}, Dtype::{})", to_code(shape), value, to_string(dtype)), {},
        [=](const Tensors&) { return full(shape, value, dtype); }, {value, value});
  return true;
}

bool add_like(Generator& g, bool ones) {
  const auto x = g.any_value();
  g.add(
      ones ? "ones_like" : "zeros_like", ones ? "ones_like($0)" : "zeros_like($0)", {x},
      [ones](const Tensors& in) { return ones ? ones_like(in[0]) : zeros_like(in[0]); }, ones ? Range{1, 1} : Range{0, 0});
  return true;
}

bool add_arange(Generator& g) {
  const auto dtype = g.choose().of({Dtype::i64, Dtype::i32, g.float_dtype()});
  const auto count = g.extent();
  const double start = static_cast<double>(g.choose().integer(-3, 3)), step = is_floating(dtype) ? 0.125 : 1;
  g.add("arange", fmt::format("arange({}, {}, {}, Dtype::{})", count, start, step, to_string(dtype)), {},
        [=](const Tensors&) { return arange(count, start, step, dtype); }, {start, start + step * static_cast<double>(count)});
  return true;
}

}  // namespace

std::vector<Entry> number_entries() {
  return {{"full", 0.5, add_full},
          {"zeros", 0.3,
           [](Generator& g) {
             return add_made(g, "zeros", [](const Shape& s, Dtype d) { return zeros(s, d); }, {0, 0});
           }},
          {"ones", 0.3,
           [](Generator& g) {
             return add_made(g, "ones", [](const Shape& s, Dtype d) { return ones(s, d); }, {1, 1});
           }},
          {"zeros_like", 0.3, [](Generator& g) { return add_like(g, false); }},
          {"ones_like", 0.3, [](Generator& g) { return add_like(g, true); }},
          {"arange", 0.7, add_arange},
          {"rand", 0.5,
           [](Generator& g) {
             return add_made(g, "rand", [](const Shape& s, Dtype d) { return rand(s, d); }, {0, 1});
           }},
          {"randn", 0.5, [](Generator& g) {
             return add_made(g, "randn", [](const Shape& s, Dtype d) { return randn(s, d); }, {-6, 6});
           }}};
}

}  // namespace clnet::fuzz

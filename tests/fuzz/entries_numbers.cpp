// Random calls of the operations that make tensors from numbers.
#include <fmt/format.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

/// `code` shows the call, of the name, the shape and the dtype.
bool add_made(Generator& g, std::string_view name, Tensor (*make)(const Shape&, Dtype), Range range,
              std::string_view code = "{0}({1}, Dtype::{2})") {
  const auto shape = g.shape(static_cast<int>(g.choose().integer(0, 3)));
  const auto dtype = g.float_dtype();
  g.add(
      std::string(name), fmt::format(fmt::runtime(code), name, to_code(shape), to_string(dtype)), {},
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

/// With the shape and dtype of a floating value.
bool add_random_like(Generator& g, bool normal) {
  const auto x = g.floating();
  g.add(
      normal ? "randn_like" : "rand_like", normal ? "randn_like($0)" : "rand_like($0)", {x},
      [normal](const Tensors& in) { return normal ? randn_like(in[0]) : rand_like(in[0]); }, normal ? Range{-6, 6} : Range{0, 1});
  return true;
}

bool add_full_like(Generator& g) {
  const auto x = g.any_value();
  g.add("full_like", "full_like($0, 1)", {x}, [](const Tensors& in) { return full_like(in[0], 1); }, {1, 1});
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
  return {
      {"full", 0.5, add_full},
      {"zeros", 0.3,
       [](Generator& g) {
         return add_made(g, "zeros", [](const Shape& s, Dtype d) { return zeros(s, d); }, {0, 0});
       }},
      {"ones", 0.3,
       [](Generator& g) {
         return add_made(g, "ones", [](const Shape& s, Dtype d) { return ones(s, d); }, {1, 1});
       }},
      {"full_like", 0.3, add_full_like},
      {"rand_like", 0.3, [](Generator& g) { return add_random_like(g, false); }},
      {"randn_like", 0.3, [](Generator& g) { return add_random_like(g, true); }},
      {"normal", 0.3,
       [](Generator& g) {
         return add_made(
             g, "normal", [](const Shape& s, Dtype d) { return normal(1, 0.5, s, d); }, {-2, 4}, "{0}(1, 0.5, {1}, Dtype::{2})");
       }},
      {"exponential", 0.3,
       [](Generator& g) {
         return add_made(
             g, "exponential", [](const Shape& s, Dtype d) { return exponential(s, 2, d); }, {0, 9}, "{0}({1}, 2, Dtype::{2})");
       }},
      {"truncated_normal", 0.3,
       [](Generator& g) {
         return add_made(
             g, "truncated_normal", [](const Shape& s, Dtype d) { return truncated_normal(s, 0, 1, -2, 2, d); }, {-2, 2},
             "{0}({1}, 0, 1, -2, 2, Dtype::{2})");
       }},
      {"logspace", 0.3,
       [](Generator& g) {
         return add_made(
             g, "logspace", [](const Shape& s, Dtype d) { return reshape(logspace(-1, 2, s.numel(), 2, d), s); }, {0.5, 4},
             "reshape({0}(-1, 2, Shape{1}.numel(), 2, Dtype::{2}), {1})");
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

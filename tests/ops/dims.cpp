// A dimension that a tensor does not have: the error names the function that was called, the dimension as it was given, and the
// shape; also where the function is made up of others.
#include <catch2/catch.hpp>
#include <functional>
#include <regex>
#include <set>

#include "clnet/clnet.h"
#include "tests/paths.h"
#include "tests/support/declarations.h"

using namespace clnet;

namespace {

struct CallAlong {
  std::string function;
  std::function<void(const Tensor& x, int dim)> run;
};

#define ALONG(name)                                       \
  CallAlong {                                             \
#name, [](const Tensor& x, int dim) { name(x, dim); } \
  }
#define OVER(name)                                             \
  CallAlong {                                                  \
#name, [](const Tensor& x, int dim) { name(x, {0, dim}); } \
  }

std::vector<CallAlong> calls_along() {
  const Tensor indices = zeros({2, 3, 4}, Dtype::i64), list = zeros({2}, Dtype::i64), start = zeros({1}, Dtype::i64);
  return {
      ALONG(glu),
      ALONG(softmax),
      ALONG(log_softmax),
      ALONG(softmin),
      ALONG(argmax),
      ALONG(argmin),
      ALONG(cumsum),
      ALONG(cumprod),
      ALONG(cummax),
      ALONG(cummin),
      ALONG(logcumsumexp),
      ALONG(median),
      ALONG(nanmedian),
      ALONG(mode),
      ALONG(unbind),
      ALONG(sort),
      ALONG(argsort),
      ALONG(squeeze),
      ALONG(unsqueeze),
      OVER(sum),
      OVER(mean),
      OVER(prod),
      OVER(max),
      OVER(min),
      OVER(any),
      OVER(all),
      OVER(var),
      OVER(stddev),
      OVER(logsumexp),
      OVER(flip),
      OVER(var_mean),
      OVER(std_mean),
      OVER(aminmax),
      OVER(count_nonzero),
      OVER(nansum),
      OVER(nanmean),
      {"norm", [](const Tensor& x, int dim) { norm(x, 2, {dim}); }},
      {"norm", [](const Tensor& x, int dim) { norm(x, 0, {dim}); }},
      {"norm", [](const Tensor& x, int dim) { norm(x, 1, {dim}); }},
      {"norm", [](const Tensor& x, int dim) { norm(x, 3, {dim}); }},
      {"norm", [](const Tensor& x, int dim) { norm(x, INFINITY, {dim}); }},
      {"transpose", [](const Tensor& x, int dim) { transpose(x, dim, 0); }},
      {"transpose", [](const Tensor& x, int dim) { transpose(x, 0, dim); }},
      {"permute",
       [](const Tensor& x, int dim) {
         permute(x, {0, dim, 1});
       }},
      {"flatten", [](const Tensor& x, int dim) { flatten(x, dim); }},
      {"flatten", [](const Tensor& x, int dim) { flatten(x, 0, dim); }},
      {"concat",
       [](const Tensor& x, int dim) {
         concat({x, x}, dim);
       }},
      {"stack",
       [](const Tensor& x, int dim) {
         stack({x, x}, dim);
       }},
      {"split",
       [](const Tensor& x, int dim) {
         split(x, {1, 1}, dim);
       }},
      {"slice", [](const Tensor& x, int dim) { slice(x, dim, 0, 1); }},
      {"slice_update", [](const Tensor& x, int dim) { slice_update(x, dim, 0, x); }},
      {"slice_update", [=](const Tensor& x, int dim) { slice_update(x, dim, start, x); }},
      {"narrow", [](const Tensor& x, int dim) { narrow(x, dim, 0, 1); }},
      {"narrow", [=](const Tensor& x, int dim) { narrow(x, dim, start, 1); }},
      {"roll", [](const Tensor& x, int dim) { roll(x, {1}, {dim}); }},
      {"repeat_interleave", [](const Tensor& x, int dim) { repeat_interleave(x, 2, dim); }},
      {"diagonal", [](const Tensor& x, int dim) { diagonal(x, 0, dim, 1); }},
      {"diagonal", [](const Tensor& x, int dim) { diagonal(x, 0, 0, dim); }},
      {"index_select", [=](const Tensor& x, int dim) { index_select(x, dim, list); }},
      {"gather", [=](const Tensor& x, int dim) { gather(x, dim, indices); }},
      {"scatter", [=](const Tensor& x, int dim) { scatter(x, dim, indices, x); }},
      {"scatter_add", [=](const Tensor& x, int dim) { scatter_add(x, dim, indices, x); }},
      {"scatter_reduce", [=](const Tensor& x, int dim) { scatter_reduce(x, dim, indices, x, ScatterReduction::prod); }},
      {"index_add", [=](const Tensor& x, int dim) { index_add(x, dim, list, x); }},
      {"topk", [](const Tensor& x, int dim) { topk(x, 1, dim); }},
      {"gumbel_softmax", [](const Tensor& x, int dim) { gumbel_softmax(x, 1, true, dim); }},
      {"layer_norm", [](const Tensor& x, int dim) { layer_norm(x, dim, {}, {}); }},
      {"rms_norm", [](const Tensor& x, int dim) { rms_norm(x, dim, {}); }},
      {"unflatten",
       [](const Tensor& x, int dim) {
         unflatten(x, dim, {1, 2});
       }},
      {"chunk", [](const Tensor& x, int dim) { chunk(x, 2, dim); }},
      {"tensor_split", [](const Tensor& x, int dim) { tensor_split(x, 2, dim); }},
      {"tensor_split", [](const Tensor& x, int dim) { tensor_split(x, std::vector<std::int64_t>{1}, dim); }},
      {"select", [](const Tensor& x, int dim) { select(x, dim, 0); }},
      {"diag_embed", [](const Tensor& x, int dim) { diag_embed(x, 0, dim, 1); }},
      {"unique", [](const Tensor& x, int dim) { unique(x, dim); }},
      {"unique_consecutive", [](const Tensor& x, int dim) { unique_consecutive(x, dim); }},
      {"rot90",
       [](const Tensor& x, int dim) {
         rot90(x, 1, {0, dim});
       }},
      {"index_fill", [=](const Tensor& x, int dim) { index_fill(x, dim, list, 1); }},
      {"index_copy", [=](const Tensor& x, int dim) { index_copy(x, dim, list, x); }},
      {"kthvalue", [](const Tensor& x, int dim) { kthvalue(x, 1, dim); }},
      {"diff", [](const Tensor& x, int dim) { diff(x, 1, dim); }},
      {"cosine_similarity", [](const Tensor& x, int dim) { cosine_similarity(x, x, dim); }},
      {"normalize", [](const Tensor& x, int dim) { normalize(x, 2, dim); }},
      {"tensordot", [](const Tensor& x, int dims) { tensordot(x, x, dims); }},
      {"cross", [](const Tensor& x, int dim) { cross(x, x, dim); }},
      {"size", [](const Tensor& x, int dim) { (void)x.size(dim); }},
  };
}

}  // namespace

TEST_CASE("a dimension that is not there is reported by the function that was called") {
  const Tensor x = zeros({2, 3, 4});
  for (const auto& call : calls_along())
    for (const int dim : {7, -7}) {
      INFO(call.function << " along " << dim);
      try {
        call.run(x, dim);
        FAIL("no error");
      } catch (const Error& error) {
        INFO(error.what());
        CHECK_THAT(error.what(), Catch::StartsWith(call.function + ": "));
        CHECK_THAT(error.what(), Catch::Contains(std::to_string(dim)));
        CHECK_THAT(error.what(), Catch::Contains("[2, 3, 4]"));
      }
    }
}

TEST_CASE("every function that takes a dimension is in the table") {
  const auto text = clnet::test::declarations(CLNET_SOURCE_DIR);
  std::set<std::string> known;
  for (const auto& call : calls_along()) known.insert(call.function);
  const std::regex function(R"(CLNET_API\s+[\w:<>]+\s+(\w+)\(([^;]*)\);)"),
      dimension(R"(\b(int (dim\w*|first|last|axis|normalized_dims)|(Dims|std::vector<int>)& dims)\b)");
  int found = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), function), end; match != end; ++match) {
    if (!std::regex_search((*match)[2].str(), dimension)) continue;
    ++found;
    INFO((*match)[0].str());
    CHECK(known.contains((*match)[1].str()));
  }
  CHECK(found >= 40);
}

namespace {

/// What has a line along a dimension, which a scalar is.
struct Line {
  std::string function;
  std::function<std::vector<Tensor>(const Tensor& x, int dim)> run;
};

#define ON_LINE(name)                                                         \
  Line {                                                                      \
#name, [](const Tensor& x, int dim) { return std::vector{name(x, dim)}; } \
  }

std::vector<Line> lines() {
  using Tensors = std::vector<Tensor>;
  const auto picks = [](const Tensor& x) { return zeros(x.shape(), Dtype::i64); };
  const auto reduced = [=](ScatterReduction reduction) {
    return Line{"scatter_reduce",
                [=](const Tensor& x, int dim) { return Tensors{scatter_reduce(x, dim, picks(x), x * 3.0, reduction)}; }};
  };
  const auto with_indices = [](const SortResult& result) { return Tensors{result.values, result.indices}; };
  return {
      ON_LINE(softmax),
      ON_LINE(log_softmax),
      ON_LINE(softmin),
      ON_LINE(argmax),
      ON_LINE(argmin),
      ON_LINE(cumsum),
      ON_LINE(cumprod),
      ON_LINE(argsort),
      ON_LINE(squeeze),
      ON_LINE(sum),
      ON_LINE(mean),
      ON_LINE(prod),
      ON_LINE(max),
      ON_LINE(min),
      ON_LINE(any),
      ON_LINE(all),
      ON_LINE(logsumexp),
      ON_LINE(flip),
      {"var", [](const Tensor& x, int dim) { return Tensors{var(x, dim, 0)}; }},
      {"stddev", [](const Tensor& x, int dim) { return Tensors{stddev(x, dim, 0, true)}; }},
      {"norm",
       [](const Tensor& x, int dim) {
         return Tensors{norm(x, 2, dim), norm(x, -INFINITY, dim), norm(x, 3, dim, true)};
       }},
      {"sort", [=](const Tensor& x, int dim) { return with_indices(sort(x, dim)); }},
      {"topk", [=](const Tensor& x, int dim) { return with_indices(topk(x, 1, dim)); }},
      {"transpose", [](const Tensor& x, int dim) { return Tensors{transpose(x, dim, 0)}; }},
      {"index_select", [=](const Tensor& x, int dim) { return Tensors{index_select(x, dim, zeros({1}, Dtype::i64))}; }},
      {"gather", [=](const Tensor& x, int dim) { return Tensors{gather(x, dim, picks(x))}; }},
      {"scatter", [=](const Tensor& x, int dim) { return Tensors{scatter(x, dim, picks(x), x * 3.0)}; }},
      {"scatter_add", [=](const Tensor& x, int dim) { return Tensors{scatter_add(x, dim, picks(x), x * 3.0)}; }},
      {"index_add", [=](const Tensor& x, int dim) { return Tensors{index_add(x, dim, zeros({1}, Dtype::i64), x * 3.0)}; }},
      reduced(ScatterReduction::sum),
      reduced(ScatterReduction::mean),
      reduced(ScatterReduction::prod),
      reduced(ScatterReduction::amax),
  };
}

}  // namespace

TEST_CASE("a scalar is a line of one element") {
  for (const auto& line : lines())
    for (const int dim : {0, -1}) {
      INFO(line.function << " along " << dim);
      const Tensor scalar = Tensor::from({0.7F}, Shape{}), one = Tensor::from({0.7F});
      const auto got = line.run(scalar, dim), want = line.run(one, dim);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i].shape() == Shape{});
        CHECK(got[i].dtype() == want[i].dtype());
        CHECK(got[i].item() == sum(want[i]).item());
        if (!is_floating(got[i].dtype())) continue;
        CHECK(gradients(got[i] * 2.0, {scalar})[0].item() == gradients(sum(want[i]) * 2.0, {one})[0].item());
      }
    }
  const Tensor x = Tensor::from({0.7F}, Shape{});
  CHECK(gumbel_softmax(x, 1, true, 0).item() == 1);
  CHECK(gumbel_softmax(x, 1, false, -1).shape() == Shape{});
  CHECK(cumsum(zeros({}, Dtype::i32), 0).dtype() == Dtype::i64);
  // Lines and scalars where one stands for the other.
  const Tensor second = Tensor::from({1}, Shape{}), row = Tensor::from({1.F, 2.F, 3.F});
  CHECK(gather(row, 0, second).shape() == Shape{});
  CHECK(gather(row, 0, second).item() == 2);
  CHECK(gather(x, 0, zeros({2}, Dtype::i64)).shape() == Shape{2});
  CHECK(scatter(row, 0, second, x).to_vector<float>() == std::vector<float>{1, 0.7F, 3});
  CHECK(index_add(row, 0, second, Tensor::from({4.F})).to_vector<float>() == std::vector<float>{1, 6, 3});
  CHECK(index_select(x, 0, zeros({}, Dtype::i64)).shape() == Shape{});
}

TEST_CASE("dimensions that a scalar does not have are refused") {
  const Tensor x = zeros({});
  for (const auto& line : lines())
    for (const int dim : {1, -2}) {
      INFO(line.function << " along " << dim);
      CHECK_THROWS_WITH(line.run(x, dim), Catch::StartsWith(line.function + ": dimension " + std::to_string(dim)));
    }
  // As in PyTorch what looks for extents finds none.
  const std::set<std::string> of_extents{"glu",    "concat", "split",    "slice", "slice_update",
                                         "narrow", "roll",   "diagonal", "size",  "repeat_interleave"};
  for (const auto& call : calls_along())
    if (of_extents.contains(call.function))
      for (const int dim : {0, -1}) {
        INFO(call.function << " along " << dim);
        CHECK_THROWS_AS(call.run(x, dim), ShapeError);
      }
  CHECK_THROWS_AS(permute(x, {0}), ShapeError);
  CHECK_THROWS_WITH(sum(x, {0, -1}), "sum: dimension -1 is given twice");
  CHECK_THROWS_WITH(flip(x, {0, 0}), "flip: dimension 0 is given twice");
  CHECK_THROWS_AS(index_select(x, 0, zeros({2}, Dtype::i64)), ShapeError);
  CHECK_THROWS_AS(index_add(x, 0, zeros({1}, Dtype::i64), zeros({1})), ShapeError);
  CHECK_THROWS_AS(gather(zeros({2, 3}), 0, zeros({}, Dtype::i64)), ShapeError);
}

TEST_CASE("other wrong arguments are reported by the function that was called") {
  const Tensor x = zeros({2, 3, 4}), y = zeros({5}), odd = zeros({3});
  CHECK_THROWS_WITH(lerp(x, y, 0.5), Catch::StartsWith("lerp: ") && Catch::Contains("[5]"));
  CHECK_THROWS_WITH(lerp(x, x, y), Catch::StartsWith("lerp: ") && Catch::Contains("[5]"));
  CHECK_THROWS_WITH(lerp(x, zeros({4}, Dtype::i32), 0.5), Catch::StartsWith("lerp: "));
  CHECK_THROWS_WITH(outer(x, y), Catch::StartsWith("outer: ") && Catch::Contains("[2, 3, 4]"));
  CHECK_THROWS_WITH(glu(odd, 0), Catch::StartsWith("glu: ") && Catch::Contains("3"));
  CHECK_THROWS_WITH(flatten(x, 2, 1), Catch::StartsWith("flatten: "));
  CHECK_THROWS_WITH(Tensor().size(0), Catch::Contains("undefined"));
  for (const auto& twice : std::vector<std::pair<std::string, std::function<void()>>>{{"norm",
                                                                                       [&] {
                                                                                         norm(x, 2, {1, -2});
                                                                                       }},
                                                                                      {"stddev",
                                                                                       [&] {
                                                                                         stddev(x, {1, -2});
                                                                                       }},
                                                                                      {"logsumexp",
                                                                                       [&] {
                                                                                         logsumexp(x, {1, -2});
                                                                                       }},
                                                                                      {"flip", [&] {
                                                                                         flip(x, {1, -2});
                                                                                       }}})
    CHECK_THROWS_WITH(twice.second(), twice.first + ": dimension -2 is given twice");
}

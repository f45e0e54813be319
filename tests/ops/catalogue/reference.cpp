// The pages of docs/reference that are made from the catalogue and from the lists of solvers. With CLNET_WRITE_DOCS=1 the tests
// write them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "lib/ops/catalogue.h"
#include "tests/ops/catalogue/dtypes.h"
#include "tests/ops/catalogue/written.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

/// The operations of a page docs/reference/ops-<name>.md.
struct Page {
  std::string_view name, header, title, purpose;
  std::vector<ops::Operation> (*operations)();
};

std::vector<ops::Operation> all_elementwise() {
  auto result = ops::elementwise_operations();
  const auto rows = ops::elementwise_rows();
  result.insert(result.end(), rows.begin(), rows.end());
  return result;
}

template <bool unary>
std::vector<ops::Operation> elementwise_part() {
  auto result = all_elementwise();
  std::erase_if(result, [](const auto& operation) { return (operation.operands.size() == 1) != unary; });
  return result;
}

const Page pages[] = {
    {"unary", "elementwise", "Elementwise functions of one tensor",
     "lists functions that compute each element from one element: roots, exponentials, activations, conversions",
     elementwise_part<true>},
    {"elementwise", "elementwise", "Elementwise operations of several tensors",
     "lists arithmetic and comparisons of two or three tensors with broadcasting, and functions that fill a tensor",
     elementwise_part<false>},
    {"reduce", "reduce", "Reductions", "lists sums, means, extremes and norms over dimensions, and running sums",
     ops::reduce_operations},
    {"shape", "shape", "Shape operations", "lists operations that arrange the same elements otherwise", ops::shape_operations},
    {"index", "index", "Indexing and sorting", "lists operations that choose or combine elements by indices",
     ops::index_operations},
    {"matmul", "matmul", "Matrix products", "lists products of matrices, with linear layers and Einstein sums",
     ops::matmul_operations},
    {"conv", "conv", "Convolutions", "lists convolutions over lines, images and volumes, and their transposes",
     ops::conv_operations},
    {"pool", "pool", "Pooling", "lists maxima and means over windows, and unpooling", ops::pool_operations},
    {"norm", "norm", "Normalization and softmax", "lists normalizations over batches, layers, groups and channels, and softmax",
     ops::norm_operations},
    {"loss", "loss", "Losses", "lists functions that compare predictions with targets", ops::loss_operations},
    {"recurrent", "recurrent", "Recurrent networks", "lists recurrent layers over a sequence, and their single steps",
     ops::recurrent_operations},
    {"attention", "attention", "Attention", "lists attention, and encodings of positions", ops::attention_operations},
    {"random", "random", "Random numbers", "lists operations that draw random numbers, dropout among them",
     ops::random_operations},
    {"image", "image", "Images", "lists operations that resize and sample images", ops::image_operations},
};

std::vector<ops::Operation> sorted_operations(const Page& page) {
  auto result = page.operations();
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return result;
}

std::string dtypes_of(const ops::Operation& operation) {
  switch (operation.takes) {
    case ops::Takes::all: return "all";
    case ops::Takes::numbers: return "floating, integers";
    case ops::Takes::floats: return "floating";
    case ops::Takes::whole: return "integers, bool";
    case ops::Takes::integers: return "integers";
    case ops::Takes::i64: return "i64";
    case ops::Takes::bools: return "bool";
  }
  return "";
}

std::string list_of_solvers(const ops::Operation& operation) {
  return std::string(operation.solvers.empty() ? operation.name : operation.solvers);
}

std::string solvers_of(const ops::Operation& operation) {
  const auto list = list_of_solvers(operation);
  const auto solvers = exec::solver_names(list);
  if (solvers.empty()) return "";
  const auto names = fmt::format("{}", fmt::join(solvers, ", "));
  return list == operation.name ? names : fmt::format("{}: {}", list, names);
}

std::string in_code(std::string_view name) { return name.empty() ? "" : fmt::format("`{}`", name); }

std::string operations_page(const Page& page) {
  const auto operations = sorted_operations(page);
  std::string text = fmt::format(
      "# {}\n\n"
      "This page {}. The declarations are in [clnet/ops/{}.h](../../include/clnet/ops/{}.h).\n"
      "[Operations](ops.md) explains the columns.\n\n"
      "| operation | PyTorch | ONNX | member | gradient | dtypes | solvers |\n|---|---|---|---|---|---|---|\n",
      page.title, page.purpose, page.header, page.header);
  std::set<std::string> names;
  for (const auto& operation : operations) {
    names.emplace(operation.name);
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", operation.name, in_code(operation.torch),
                        operation.onnx.name.empty() ? "" : fmt::format("`{}` {}", operation.onnx.name, operation.onnx.since),
                        in_code(operation.method), operation.gradient == ops::Gradient::none ? "none" : "any order",
                        dtypes_of(operation), solvers_of(operation));
  }
  std::set<std::string> rows;
  for (const auto& example : testing::examples()) {
    if (!names.contains(example.operation)) continue;
    INFO(example.operation);
    CHECK(rows.insert(testing::dtype_row(example)).second);
  }
  return text + fmt::format(
                    "\n## Results and errors\n\n"
                    "The columns are the dtypes of results by the dtype of the inputs, and the error allowed\n"
                    "([how it is measured](dtypes.md#errors)).\n\n"
                    "| operation | of f16 (f32, bf16 alike) | of i32 (i64, i8, u8 alike) | of bool | roundings of f32 allowed "
                    "|\n|---|---|---|---|---|\n{}\n",
                    fmt::join(rows, "\n"));
}

std::string index_page() {
  std::string text =
      "# Operations\n\n"
      "This page is the index of all operations: it leads to the table of each family. The public headers describe what each\n"
      "operation computes. All these pages are generated from the catalogue (`lib/ops/catalogue.h`) by\n"
      "`CLNET_WRITE_DOCS=1 build/tests/clnet-op-tests \"[written]\"`. The same test fails where a page differs from the code.\n\n"
      "| family | operations |\n|---|---|\n";
  for (const auto& page : pages) {
    std::vector<std::string> names;
    for (const auto& operation : sorted_operations(page)) names.push_back(in_code(operation.name));
    text += fmt::format("| [{}](ops-{}.md) | {} |\n", page.title, page.name, fmt::join(names, ", "));
  }
  return text +
         "\n## Columns\n\n"
         "- PyTorch: the name in `torch` or `torch.nn.functional`.\n"
         "- ONNX: the operator that computes the same, or the nearest one. The number is the operator set of the definition "
         "that\n"
         "  is meant, up to ONNX 1.23.\n"
         "- Member: the function of Tensor, as in `x.sum()`. `add`, `sub`, `mul`, `div` and `neg` are the operators +, -, *, /\n"
         "  and -.\n"
         "- Gradient: of any order, unless the column says otherwise. Second derivatives of recurrence, attention and CTC are\n"
         "  composed of other operations.\n"
         "- Dtypes: the inputs that the operation takes. It refuses others with a `DtypeError`.\n"
         "- Solvers: in the order of preference, for `CLNET_SOLVER`. An operation without solvers is generated by fusion, has "
         "one\n"
         "  kernel, or is composed of others. [Solvers](solvers.md) has all lists.\n";
}

std::string solvers_page(const std::string& now) {
  std::string table = "| list | of operations | solvers, in order |\n|---|---|---|\n";
  for (const auto& list : exec::ops_with_solvers()) {
    std::vector<std::string> users, solvers;
    for (const auto& operation : ops::catalogue())
      if (list_of_solvers(operation) == list) users.push_back(in_code(operation.name));
    for (const auto& solver : exec::solver_names(list)) solvers.push_back(in_code(solver));
    table += fmt::format("| `{}` | {} | {} |\n", list, fmt::join(users, ", "), fmt::join(solvers, ", "));
  }
  return testing::with_section(now, "solvers", table);
}

}  // namespace

TEST_CASE("the pages of operations are the catalogue", "[written]") {
  std::set<std::string> on_pages, all;
  for (const auto& page : pages) {
    for (const auto& operation : page.operations()) CHECK(on_pages.emplace(operation.name).second);
    testing::check_written(fmt::format("docs/reference/ops-{}.md", page.name),
                           [&](const auto&) { return operations_page(page); });
  }
  for (const auto& operation : ops::catalogue()) all.emplace(operation.name);
  CHECK(on_pages == all);
  testing::check_written("docs/reference/ops.md", [](const auto&) { return index_page(); });
}

TEST_CASE("docs/reference/solvers.md has the lists of solvers", "[written]") {
  testing::check_written("docs/reference/solvers.md", solvers_page);
}

TEST_CASE("the documents name solvers that there are") {
  const auto root = std::filesystem::path(CLNET_SOURCE_DIR);
  const std::regex named(R"(\b(\w+):(\w+))");
  int found = 0;
  const auto lists = exec::ops_with_solvers();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() != ".md") continue;
    const auto text = test::content(entry.path().string());
    for (std::sregex_iterator match(text.begin(), text.end(), named), end; match != end; ++match) {
      const auto list = match->str(1), solver = match->str(2);
      if (std::find(lists.begin(), lists.end(), list) == lists.end()) continue;
      INFO(entry.path() << " names " << match->str());
      const auto solvers = exec::solver_names(list);
      CHECK(std::find(solvers.begin(), solvers.end(), solver) != solvers.end());
      ++found;
    }
  }
  CHECK(found > 10);
}

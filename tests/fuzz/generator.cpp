#include "tests/fuzz/generator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "clnet/error.h"

namespace clnet::fuzz {

namespace {

/// Around the widths of vectors and tiles.
const std::vector<std::int64_t> usual_extents{1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 2, 3, 4, 6, 10, 13, 32, 63, 65, 129};

}  // namespace

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all;
    for (const auto& part :
         {elementwise_entries(), number_entries(), shape_entries(), reduce_entries(), image_entries(), volume_entries(),
          normalize_entries(), loss_entries(), attention_entries(), recurrent_entries(), index_entries()})
      all.insert(all.end(), part.begin(), part.end());
    std::set<std::string_view> names;
    for (const auto& entry : all) names.insert(catalogued_name(entry.name));
    const auto others = catalogued_entries(names);
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }();
  return entries;
}

Generator::Generator(std::uint64_t seed, const Settings& settings)
    : seed_(seed),
      settings_(settings),
      choose_(mix(seed / static_cast<std::uint64_t>(settings.block), 1)),
      sizes_(mix(seed, 2)),
      main_dtype_(choose_.of({Dtype::f32, Dtype::f32, Dtype::f32, Dtype::f16, Dtype::bf16})) {
  program_.seed = seed;
  // By a stream of its own: without doubles the other programs stay as they are.
  constexpr double share_of_doubles = 0.15;
  if (settings.doubles && Rng(mix(seed / static_cast<std::uint64_t>(settings.block), 3)).chance(share_of_doubles))
    main_dtype_ = Dtype::f64;
  main_dtype_ = allowed(settings.dtype.value_or(main_dtype_));
  const auto count = choose_.integer(2, 4);
  for (std::int64_t i = 0; i < count; ++i) extents_.push_back(sizes_.of(usual_extents));
  if (sizes_.chance(0.03)) extents_.back() = 0;
  if (extents_.size() < 4) extents_.push_back(1);
}

Program Generator::operator()() {
  if (settings_.deep) {
    add_training_step();
    return std::move(program_);
  }
  const auto wanted = static_cast<std::size_t>(choose_.integer(std::min(2, settings_.max_ops), settings_.max_ops));
  const auto structure = choose_.next();
  if (!settings_.operation.empty()) add_wanted_operation();
  // Steps that are only guards do not count; a structure that nothing fits ends by itself.
  for (std::size_t made = 0; made < wanted; ++made) {
    choose_ = Rng(mix(structure, made));
    sizes_ = Rng(mix(seed_, made + 3));
    const double kind = settings_.plain ? 1 : choose_.fraction();
    if (kind < 0.04 && made > 2)
      add_gradients();
    else if (kind < 0.06 && made > 2)
      add_detach();
    else if (kind < 0.08)
      add_follow();
    else if (kind < 0.11)
      add_checkpoint();
    else
      add_operation();
  }
  choose_ = Rng(mix(structure, ~std::uint64_t{0}));
  if (gradients_ == 0 && !settings_.plain && choose_.chance(0.3)) add_gradients();
  schedule();
  return std::move(program_);
}

void Generator::add_wanted_operation() {
  for (const auto& entry : table()) {
    if (catalogued_name(entry.name) != settings_.operation) continue;
    for (int tries = 0; tries < 8; ++tries)
      if (entry.add(*this)) return;
    throw Error(fmt::format("no call of {} fits into a program", settings_.operation));
  }
  throw Error(fmt::format("no operation has the name '{}'", settings_.operation));
}

void Generator::add_operation() {
  static const double total = [] {
    double sum = 0;
    for (const auto& entry : table()) sum += entry.weight;
    return sum;
  }();
  for (int tries = 0; tries < 8; ++tries) {
    double place = choose_.fraction() * total;
    for (const auto& entry : table()) {
      place -= entry.weight;
      if (place >= 0) continue;
      if (!settings_.without.contains(entry.name) && entry.add(*this)) return;
      break;
    }
  }
}

Shape Generator::shape(int rank) {
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  for (int d = 0; d < rank; ++d) {
    auto extent = choose_.chance(0.12) ? 1 : this->extent();
    if (!fits(elements * extent)) extent = sizes_.of<std::int64_t>({1, 2, 3});
    if (!fits(elements * extent)) extent = 1;
    elements *= extent;
    extents.push_back(extent);
  }
  return Shape(std::move(extents));
}

std::vector<Ref> Generator::all(const Condition& condition) const {
  std::vector<Ref> result;
  for (std::size_t step = 0; step < tensors_.size(); ++step)
    for (std::size_t output = 0; output < tensors_[step].size(); ++output)
      if (const Ref ref{step, output}; fits(shape_of(ref).numel()) && condition(ref)) result.push_back(ref);
  return result;
}

Ref Generator::any(const Condition& condition, const std::function<Ref()>& otherwise) {
  const auto found = all(condition);
  if (found.empty() || choose_.chance(0.08)) return otherwise();
  return choose_.chance(0.5) ? found.back() : choose_.of(found);
}

Dtype Generator::float_dtype() {
  return choose_.chance(0.85) ? main_dtype_ : allowed(choose_.of({Dtype::f32, Dtype::f16, Dtype::bf16}));
}

Ref Generator::leaf(const Shape& shape, Dtype dtype, Range range, Fill fill) {
  Step step;
  step.op = "leaf";
  step.leaf = {{shape, dtype}, fill, range.low, range.high};
  return append(std::move(step), {leaf_tensor(Array(shape), dtype)}, range)[0];
}

Ref Generator::any_value() {
  return any([](const Ref&) { return true; },
             [&] {
               if (choose_.chance(0.8)) return floating();
               return choose_.chance(0.7) ? integers() : truth();
             });
}

Ref Generator::floating(double size, int rank) {
  const auto ref = any([&](const Ref& x) { return is_floating(dtype_of(x)) && shape_of(x).rank() >= rank; },
                       [&] {
                         return leaf(shape(static_cast<int>(choose_.integer(std::max(rank, 0), std::max(rank, 4)))),
                                     float_dtype(), {-2, 2}, choose_.chance(0.2) ? Fill::grid : Fill::smooth);
                       });
  return tame(ref, size);
}

Ref Generator::positive() {
  const auto ref = floating();
  const auto [low, high] = range(ref);
  if (low > 0.05 && high < 50) return ref;
  switch (choose_.below(3)) {
    case 0: return add("operator+", "abs($0) + 0.5", {ref}, [](const Tensors& x) { return abs(x[0]) + 0.5; }, {0.5, 8.5});
    case 1:
      return add("operator+", "sigmoid($0) + 0.25", {ref}, [](const Tensors& x) { return sigmoid(x[0]) + 0.25; }, {0.25, 1.25});
    default: return leaf(shape_of(ref), dtype_of(ref), {0.25, 2});
  }
}

Ref Generator::integers(double size) {
  return any(
      [&](const Ref& ref) { return !is_floating(dtype_of(ref)) && dtype_of(ref) != Dtype::boolean && range(ref).size() <= size; },
      [&] {
        const auto dtype = choose_.of({Dtype::i32, Dtype::i64, Dtype::i8, Dtype::u8});
        return leaf(shape(static_cast<int>(choose_.integer(0, 3))), dtype, {dtype == Dtype::u8 ? 0.0 : -5.0, 9}, Fill::integers);
      });
}

Ref Generator::truth() {
  return any([&](const Ref& ref) { return dtype_of(ref) == Dtype::boolean; },
             [&] {
               return leaf(shape(static_cast<int>(choose_.integer(0, 3))), Dtype::boolean, {0, 1}, Fill::integers);
             });
}

Ref Generator::image(std::int64_t least) {
  const auto found = [&](const Ref& ref) {
    const auto& s = shape_of(ref);
    return is_floating(dtype_of(ref)) && s.rank() == 4 && s[2] >= least && s[3] >= least && s[1] > 0;
  };
  const auto ref = any(found, [&] {
    const auto n = choose_.integer(1, 3), c = sizes_.of<std::int64_t>({1, 2, 3, 4, 6, 8, 16});
    const auto h = std::max(least, sizes_.of<std::int64_t>({1, 3, 4, 5, 7, 8, 9, 12, 16})),
               w = std::max(least, sizes_.of<std::int64_t>({1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20}));
    return leaf(fits(n * c * h * w) ? Shape{n, c, h, w} : Shape{1, 2, h, w}, float_dtype(), {-2, 2},
                choose_.chance(0.2) ? Fill::grid : Fill::smooth);
  });
  return tame(ref, 8);
}

Ref Generator::partner(const Shape& shape, Dtype dtype, bool within) {
  const auto matches = [&](const Ref& ref) {
    if (dtype_of(ref) != dtype) return false;
    try {
      const auto both = broadcast(shape, shape_of(ref), "");
      return within ? both == shape : fits(both.numel());
    } catch (const ShapeError&) {
      return false;
    }
  };
  return any(matches, [&] {
    // The last dimensions of the shape, some of them 1; in front perhaps one more.
    auto extents = shape.extents();
    extents.erase(extents.begin(), extents.begin() + choose_.below(shape.rank() + 1));
    for (auto& extent : extents)
      if (choose_.chance(0.25)) extent = 1;
    if (!within && choose_.chance(0.1) && fits(shape.numel() * 3) && extents.size() == static_cast<std::size_t>(shape.rank()))
      extents.insert(extents.begin(), sizes_.integer(1, 3));
    if (is_floating(dtype)) return leaf(Shape(extents), dtype, {-2, 2}, choose_.chance(0.2) ? Fill::grid : Fill::smooth);
    const Range range = dtype == Dtype::boolean ? Range{0, 1} : dtype == Dtype::u8 ? Range{0, 9} : Range{-5, 9};
    return leaf(Shape(extents), dtype, range, Fill::integers);
  });
}

Ref Generator::line_of(const Ref& x) {
  const auto& shape = shape_of(x);
  if (shape.rank() == 0 || shape.numel() == 0) return x;
  const int dim = choose_.chance(0.7) ? 0 : static_cast<int>(choose_.below(shape.rank()));
  const auto start = choose_.chance(0.5) ? 0 : sizes_.below(shape[dim]);
  return add(
      "slice", fmt::format("slice($0, {}, {}, {})", dim, start, start + 1), {x},
      [=](const Tensors& in) { return slice(in[0], dim, start, start + 1); }, range(x));
}

Ref Generator::of_shape(const Shape& shape, Dtype dtype) {
  const auto ref =
      any([&](const Ref& x) { return dtype_of(x) == dtype && shape_of(x) == shape; }, [&] { return leaf(shape, dtype); });
  return tame(ref, 8);
}

Ref Generator::tame(const Ref& ref, double size) {
  if (range(ref).size() <= size || !is_floating(dtype_of(ref))) return ref;
  // clamp() is to 2.
  switch (const auto way = choose_.below(3); size < 2 ? way % 2 : way) {
    case 0: return add("tanh", "tanh($0)", {ref}, [](const Tensors& x) { return tanh(x[0]); }, {-1, 1});
    case 1: return add("softsign", "softsign($0)", {ref}, [](const Tensors& x) { return softsign(x[0]); }, {-1, 1});
    default: return add("clamp", "clamp($0, -2, 2)", {ref}, [](const Tensors& x) { return clamp(x[0], -2, 2); }, {-2, 2});
  }
}

std::vector<Ref> Generator::append(Step step, Tensors outputs, Range range) {
  for (const auto& output : outputs) step.outputs.push_back(output.spec());
  step.group = group_;
  program_.steps.push_back(std::move(step));
  ranges_.emplace_back(outputs.size(), range);
  tensors_.push_back(std::move(outputs));
  std::vector<Ref> result;
  for (std::size_t i = 0; i < tensors_.back().size(); ++i) result.push_back({tensors_.size() - 1, i});
  return result;
}

std::vector<Ref> Generator::add_all(std::string op, std::string code, std::vector<Ref> inputs, Make make, Range range) {
  Tensors operands;
  for (const auto& input : inputs) operands.push_back(tensor(input));
  auto outputs = make(operands);
  Step step;
  step.op = std::move(op);
  step.code = std::move(code);
  step.inputs = std::move(inputs);
  step.make = std::move(make);
  return append(std::move(step), std::move(outputs), range);
}

Ref Generator::add(std::string op, std::string code, std::vector<Ref> inputs, const std::function<Tensor(const Tensors&)>& make,
                   Range range) {
  return add_all(
      std::move(op), std::move(code), std::move(inputs), [make](const Tensors& in) { return Tensors{make(in)}; }, range)[0];
}

void Generator::add_gradients() {
  // A graph of gradients of gradients of gradients has thousands of nodes and nothing new.
  if (gradients_ >= 3) return;
  const auto outputs = all([&](const Ref& ref) { return is_floating(dtype_of(ref)) && !program_.steps[ref.step].is_leaf(); });
  if (outputs.empty()) return;
  auto y = choose_.chance(0.6) ? outputs.back() : choose_.of(outputs);
  // What leads to y.
  std::set<std::size_t> before{y.step};
  for (auto step = y.step + 1; step-- > 0;)
    if (before.count(step))
      for (const auto& input : program_.steps[step].inputs) before.insert(input.step);
  const auto sources = all(
      [&](const Ref& ref) { return is_floating(dtype_of(ref)) && ref != y && (before.count(ref.step) || choose_.chance(0.05)); });
  if (sources.empty()) return;
  if (size_of(dtype_of(y)) < size_of(Dtype::f32) && choose_.chance(0.5))
    y = add(
        "cast", "cast($0, Dtype::f32)", {y}, [](const Tensors& x) { return cast(x[0], Dtype::f32); }, range(y));
  y = tame(y, 8);
  Ref loss = y;
  switch (choose_.below(4)) {
    case 0: loss = add("sum", "sum($0)", {y}, [](const Tensors& x) { return sum(x[0]); }, {-1e3, 1e3}); break;
    case 1:
      loss = add(
          "mean", "mean($0)", {y}, [](const Tensors& x) { return mean(x[0]); }, range(y));
      break;
    case 2: loss = add("mean", "mean(square($0))", {y}, [](const Tensors& x) { return mean(square(x[0])); }, {0, 64}); break;
    default: {
      const auto weights = leaf(shape_of(y), dtype_of(y), {-1, 1});
      loss = add("sum", "sum($0 * $1)", {y, weights}, [](const Tensors& x) { return sum(x[0] * x[1]); }, {-1e3, 1e3});
    }
  }
  std::vector<Ref> inputs{loss};
  const auto count = choose_.integer(1, 3);
  for (std::int64_t i = 0; i < count; ++i) inputs.push_back(choose_.of(sources));
  std::vector<std::string> names;
  for (std::size_t i = 1; i < inputs.size(); ++i) names.push_back(fmt::format("${}", i));
  ++gradients_;
  add_all("gradients", fmt::format("gradients($0, {{{}}})", fmt::join(names, ", ")), inputs,
          [](const Tensors& in) { return gradients(in[0], std::span(in).subspan(1)); }, {-100, 100});
}

void Generator::add_detach() {
  const auto x = any_value();
  if (group_ != 0) return;  // what is evaluated is not computed again
  Step step;
  step.op = "detach";
  step.code = "$0.detach()";
  step.inputs = {x};
  step.make = [](const Tensors& in) { return Tensors{in[0].detach()}; };
  // Here, where nothing is to be evaluated, a leaf in its place.
  append(std::move(step), {leaf_tensor(Array(shape_of(x)), dtype_of(x))}, range(x));
}

void Generator::add_follow() {
  const auto values = all([&](const Ref& ref) { return is_floating(dtype_of(ref)) && !program_.steps[ref.step].is_leaf(); });
  if (values.empty()) return;
  const auto x = tame(choose_.chance(0.5) ? values.back() : choose_.of(values), 1000);
  const int times = static_cast<int>(choose_.integer(1, 2));
  Step step;
  step.op = "follow";
  step.code = fmt::format("follow($0, {}).value", times);
  step.inputs = {x};
  step.make = [](const Tensors& in) { return in; };
  step.times = times;
  append(std::move(step), {tensor(x)}, range(x));
}

void Generator::add_checkpoint() {
  if (group_ != 0) return;
  group_ = ++groups_;
  const auto first = program_.steps.size();
  Tensors results;
  const auto structure = choose_.next(), extents = sizes_.next();
  const auto count = choose_.integer(2, 5);
  checkpoint(std::function<Tensors()>([&] {
    for (std::int64_t i = 0; i < count; ++i) {
      choose_ = Rng(mix(structure, static_cast<std::uint64_t>(i)));
      sizes_ = Rng(mix(extents, static_cast<std::uint64_t>(i)));
      add_operation();
    }
    for (auto step = first; step < tensors_.size(); ++step)
      results.insert(results.end(), tensors_[step].begin(), tensors_[step].end());
    return results;
  }));
  group_ = 0;
}

void Generator::schedule() {
  const auto count = program_.steps.size();
  std::vector<bool> read(count, false);
  for (const auto& step : program_.steps)
    for (const auto& input : step.inputs) read[input.step] = true;
  std::vector<Ref> wanted;
  for (std::size_t k = 0; k < count; ++k) {
    const auto& step = program_.steps[k];
    if (step.is_leaf()) continue;
    for (std::size_t output = 0; output < step.outputs.size(); ++output)
      if ((!read[k] && choose_.chance(0.9)) || choose_.chance(0.15)) wanted.push_back({k, output});
  }
  if (wanted.empty() && count > 0) wanted.push_back({count - 1, 0});
  if (wanted.size() > 1 && choose_.chance(0.3))
    for (auto i = wanted.size(); i > 1; --i)
      std::swap(wanted[i - 1], wanted[static_cast<std::size_t>(choose_.below(static_cast<std::int64_t>(i)))]);
  // Some in the middle of the program: what follows reads values instead of graph.
  std::vector<Ref> late;
  for (const auto& ref : wanted) {
    if (!choose_.chance(0.12) || ref.step + 1 >= count || program_.steps[ref.step].group != 0) {
      late.push_back(ref);
      continue;
    }
    program_.evaluations.push_back(
        {ref.step + 1 + static_cast<std::size_t>(choose_.below(static_cast<std::int64_t>(count - ref.step - 1))), {ref}});
  }
  std::stable_sort(program_.evaluations.begin(), program_.evaluations.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  const auto calls = choose_.chance(0.7) ? 1u : static_cast<unsigned>(choose_.integer(2, 3));
  for (unsigned call = 0; call < calls; ++call) {
    Evaluation evaluation{count, {}};
    for (std::size_t i = call; i < late.size(); i += calls) evaluation.values.push_back(late[i]);
    if (!evaluation.values.empty()) program_.evaluations.push_back(std::move(evaluation));
  }
  if (!choose_.chance(0.3)) return;
  // What nobody asked for was kept, or is computed, when somebody does: the last first.
  for (auto k = count; k-- > 0;) {
    const auto& step = program_.steps[k];
    if (step.is_leaf() || step.op == "detach" || step.op == "follow") continue;
    for (std::size_t output = 0; output < step.outputs.size(); ++output)
      if (choose_.chance(0.4)) program_.evaluations.push_back({count, {{k, output}}});
  }
}

Ref with_rank(Generator& g, int rank) {
  return g.any([&](const Ref& ref) { return g.shape_of(ref).rank() >= rank; }, [&] { return g.floating(8, rank); });
}

int some_dim(Generator& g, const Ref& x) { return static_cast<int>(g.choose().below(g.shape_of(x).rank())); }

Ref indices(Generator& g, std::int64_t extent, const Shape& shape) {
  return g.leaf(shape, g.choose().of({Dtype::i32, Dtype::i64}),
                {static_cast<double>(-std::min<std::int64_t>(extent, 2)), static_cast<double>(extent - 1)}, Fill::integers);
}

}  // namespace clnet::fuzz

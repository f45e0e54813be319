#include "lib/exec/fuse/elementwise.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/base/planning_steps.h"
#include "lib/exec/choose/nontemporal_stores.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/fuse/expression.h"

namespace clnet::exec {

std::optional<InputSlice> input_slice_of(const Node& node) { return node.op->fusion(specs_of(node.inputs)).input_slice; }

bool computes_f64(const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [](const Spec& spec) { return spec.dtype == Dtype::f64; }) ||
         std::any_of(node.inputs.begin(), node.inputs.end(), [](const Tensor& input) { return input.dtype() == Dtype::f64; });
}

std::string_view value_type(Dtype dtype, bool f64) {
  switch (dtype) {
    case Dtype::f64: return "double";
    case Dtype::i32: return "int";
    case Dtype::i64: return "long";
    case Dtype::i8: return "char";
    case Dtype::u8:
    case Dtype::boolean: return "uchar";
    default: return f64 ? "clnet_single" : "float";
  }
}

std::string converted(Dtype dtype, const std::string& expression) {
  switch (dtype) {
    case Dtype::f16: return fmt::format("clnet_round_f16({})", expression);
    case Dtype::bf16: return fmt::format("clnet_round_bf16({})", expression);
    case Dtype::boolean: return fmt::format("({}) != 0", expression);
    default: return expression;
  }
}

namespace {

class Assembly {
 public:
  Assembly(const std::vector<const Node*>& nodes, const std::vector<const Node*>& outputs) : nodes_(nodes), outputs_(outputs) {}

  std::optional<ElementwiseKernel> operator()() {
    const auto elements = outputs_.front()->outputs[0].shape.numel();
    std::vector<Shape> shapes;  // different ones: there are few
    const auto add = [&](const Shape& shape) {
      if (shape.numel() == elements && std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    };
    for (const auto* node : nodes_) {
      if (node->outputs[0].shape.numel() != elements) continue;
      add(node->outputs[0].shape);
      for (const auto& input : node->inputs) add(input.shape());
    }
    if (elements == 0) {
      result_.loops = {0};
    } else {
      auto loops = common_loops(shapes);
      if (!loops) return std::nullopt;
      result_.loops = std::move(*loops);
    }
    const Strides linear = linear_strides(result_.loops);
    for (const auto* output : outputs_) result_.outputs.push_back(statement(output, {true, linear}));
    if (failed_) return std::nullopt;
    std::vector<Strides*> strides;
    for (auto& load : result_.loads) strides.push_back(&load.at.strides);
    for (auto& statement : result_.statements) strides.push_back(&statement.at.strides);
    if (elements != 0) join_loops(result_.loops, strides);
    return std::move(result_);
  }

 private:
  using Operand = ElementwiseKernel::Operand;
  using Position = ElementwiseKernel::Position;

  std::size_t statement(const Node* node, const Position& at) {
    const auto same = [&](const auto& other) { return other.node == node && other.at == at; };
    auto& statements = result_.statements;
    if (const auto found = std::find_if(statements.begin(), statements.end(), same); found != statements.end())
      return static_cast<std::size_t>(found - statements.begin());
    const auto specs = specs_of(node->inputs);
    const auto input_slice = node->op->fusion(specs).input_slice;
    std::vector<Operand> operands;
    for (const auto& input : node->inputs) operands.push_back(operand(input, *node, input_slice, at));
    auto expression = node->op->expr(specs);
    if (computes_f64(*node)) {
      result_.f64 = true;
      expression.text = in_doubles(expression.text);
    }
    statements.push_back({node, std::move(operands), at, std::move(expression)});
    count_planning(1 + node->inputs.size());
    return statements.size() - 1;
  }

  Operand operand(const Tensor& input, const Node& reader, const std::optional<InputSlice>& input_slice, const Position& at) {
    Position position;
    position.linear = at.linear && input.numel() == reader.outputs[0].shape.numel();
    if (auto strides = broadcast_strides(input.shape(), reader.outputs[0].shape, at.strides, result_.loops))
      position.strides = std::move(*strides);
    else
      failed_ = true;
    const Tensor source = source_of(input);
    if (input_slice) {
      position.linear = false;
      position.first = input_slice->start;
      for (int d = input_slice->dim + 1; d < input.rank(); ++d) position.first *= input.size(d);
    }
    const auto index_in = [&](std::vector<Tensor>& list) {
      const auto found = std::find_if(list.begin(), list.end(), [&](const Tensor& other) { return other.same(source); });
      if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
      list.push_back(source);
      return list.size() - 1;
    };
    if (std::find(nodes_.begin(), nodes_.end(), node_of(source).get()) != nodes_.end() && !value_of(source)) {
      failed_ = failed_ || input_slice;  // what is read at other places comes from memory
      return {Operand::From::statement, statement(node_of(source).get(), position)};
    }
    if (is_host_scalar(source, value_of(source).get())) return {Operand::From::scalar, index_in(result_.scalars)};
    const auto buffer = index_in(result_.buffers);
    auto& loads = result_.loads;
    const auto same = [&](const auto& load) { return load.buffer == buffer && load.at == position; };
    const auto found = std::find_if(loads.begin(), loads.end(), same);
    if (found != loads.end()) return {Operand::From::load, static_cast<std::size_t>(found - loads.begin())};
    loads.push_back({buffer, std::move(position)});
    return {Operand::From::load, loads.size() - 1};
  }

  const std::vector<const Node*>& nodes_;
  const std::vector<const Node*>& outputs_;
  ElementwiseKernel result_;
  bool failed_ = false;
};

}  // namespace

bool is_elementwise(const Node& node) { return node.outputs.size() == 1 && !node.op->expr(specs_of(node.inputs)).text.empty(); }

std::optional<ElementwiseKernel> assemble(const std::vector<const Node*>& nodes, const std::vector<const Node*>& outputs) {
  return Assembly(nodes, outputs)();
}

std::size_t ElementwiseKernel::parameter_bytes() const {
  std::size_t bytes = 16 * (buffers.size() + outputs.size()) + 8 * scalars.size() + 4 * (loops.size() + 3);
  for (const auto& load : loads) bytes += load.at.linear ? 0 : 4 * (loops.size() + 1);
  for (const auto& statement : statements) {
    bytes += (f64 ? 8 : 4) * statement.expression.parameters.size();
    if (!statement.at.linear) bytes += 4 * (loops.size() - 1);
  }
  return bytes;
}

int ElementwiseKernel::cost() const {
  return std::accumulate(statements.begin(), statements.end(), 0,
                         [](int sum, const Statement& statement) { return sum + exec::cost(statement.expression.text); });
}

namespace {

/// Prints the kernel and records its launch. Loops are called 0, 1, ... from the outermost on.
class Printer {
 public:
  Printer(const ElementwiseKernel& kernel, Recorder& recorder)
      : kernel_(kernel), recorder_(recorder), inner_(kernel.loops.size() - 1) {
    std::vector<bool> used(kernel.statements.size(), false), stored(kernel.statements.size(), false);
    for (const auto& statement : kernel.statements)
      for (const auto& operand : statement.operands)
        if (operand.from == From::statement) used[operand.index] = true;
    for (auto output : kernel.outputs) stored[output] = true;
    used_ = std::move(used);
    stored_ = std::move(stored);
    find_rows();
  }

  /// `rows`: a work-item takes rows, or pieces of them, else an element or some that follow one another.
  void operator()(bool rows) {
    const auto& config = recorder_.config();
    if (rows)
      nontemporal_ = fit_for_nontemporal_stores();
    else
      lanes_ = std::min(config["lanes"], fitting_lanes());
    name_ = function_name();
    std::size_t parameter = 0;
    for (std::size_t k = 0; k < kernel_.outputs.size(); ++k) parameters_ += fmt::format("{}OUT_SHARED(y{})", k ? ", " : "", k);
    for (std::size_t k = 0; k < kernel_.buffers.size(); ++k) parameters_ += fmt::format(", IN_SHARED(x{})", k);
    for (std::size_t k = 0; k < kernel_.scalars.size(); ++k) parameters_ += fmt::format(", SCALAR(s{})", k);
    for (const auto& statement : kernel_.statements) {
      first_parameter_.push_back(parameter);
      for (std::size_t k = 0; k < statement.expression.parameters.size(); ++k)
        parameters_ += fmt::format(", const float p{}", parameter++);
    }
    for (std::size_t d = 0; d <= inner_; ++d) parameters_ += fmt::format(", const int n{}", d);
    const auto body = rows ? row_body() : lanes_ > 1 ? lanes_body() : element_body();
    for (const auto& [name, stride] : strides_) parameters_ += fmt::format(", const int {}", name);
    if (rows)
      parameters_ +=
          inner_ ? ", const int rows, const int rows_per_item, const int piece, const int pieces" : ", const int piece";

    auto source = fmt::format("#include \"{}.clh\"\n\nkernel {}void {}({}) {{\n{}}}\n",
                              lanes_ > 1     ? "lanes"
                              : nontemporal_ ? "nontemporal_stores"
                                             : "clnet",
                              rows ? "WIDE_KERNEL " : "", name_, wrapped(parameters_, name_.size() + (rows ? 25 : 13)), body);
    auto& launch = recorder_.generated(name_, std::move(source), name_);
    if (lanes_ > 1) launch.define("LANES", lanes_);
    // Also where f64 lies between casts, and no buffer has it.
    if (kernel_.f64) launch.define("COMPUTES_F64", 1);
    // So that fused operations give the bits of single ones. Vectors keep theirs, which hold without it.
    if (!recorder_.device().prefers_vector_kernels) launch.define("ROUND_EACH", 1);
    if (rows && recorder_.device().native_float_width >= 16) launch.define("WIDE", 1);
    if (nontemporal_)
      launch.define("NONTEMPORAL_STORES", 1).define("VW", std::clamp(recorder_.device().native_float_width, 4, 16));
    arguments(launch);
    if (rows)
      row_range(launch, config["elements"]);
    else
      element_range(launch, config["group"]);
    const auto& shape = kernel_.statements[kernel_.outputs[0]].node->outputs[0].shape;
    launch.detail(to_string(shape)).flops(static_cast<double>(shape.numel()) * static_cast<double>(kernel_.statements.size()));
  }

  /// How many elements that follow one another a work-item may compute: as many as 16 bytes hold, where each load walks along
  /// the innermost loop by single elements, from multiples of as many on, or stays where it is. 1: not so.
  std::int64_t fitting_lanes() const {
    // A GPU executes some 150 instructions while its memory moves the 8 bytes of an element that is read and written: what takes
    // more does not wait for memory. Fewer work-items than this on each unit leave units idle. And lanes lie in registers.
    constexpr int most_cost = 128;
    constexpr std::int64_t least_items = 64, most_values = 48;
    std::size_t widest = 1;
    std::int64_t arrays = 0;
    const auto add = [&](Dtype dtype) { widest = std::max(widest, size_of(dtype)), ++arrays; };
    for (auto output : kernel_.outputs) add(kernel_.statements[output].node->outputs[0].dtype);
    for (std::size_t k = 0; k < kernel_.loads.size(); ++k)
      if (!row_load_[k]) add(kernel_.buffers[kernel_.loads[k].buffer].dtype());
    if (widest > 4 || kernel_.cost() > most_cost) return 1;
    const auto& loops = kernel_.loops;
    const auto elements = std::accumulate(loops.begin(), loops.end(), std::int64_t{1}, std::multiplies{});
    for (std::int64_t lanes : {8, 4}) {
      if (lanes * static_cast<std::int64_t>(widest) > 16 || lanes * arrays > most_values) continue;
      if (elements / lanes < least_items * recorder_.device().compute_units) continue;
      const auto whole = [&](std::int64_t value) { return value % lanes == 0; };
      bool fits = inner_ == 0 || whole(loops[inner_]);
      for (const auto& [buffer, at] : kernel_.loads) {
        if (at.linear || at.strides[inner_] == 0) continue;
        fits = fits && at.strides[inner_] == 1 && whole(at.first) && std::all_of(at.strides.begin(), at.strides.end() - 1, whole);
      }
      if (fits) return lanes;
    }
    return 1;
  }

 private:
  using From = ElementwiseKernel::Operand::From;
  using Operand = ElementwiseKernel::Operand;
  using Position = ElementwiseKernel::Position;
  /// Where the operations of the innermost loop get their elements: by loads of their own, or from arrays of lanes, which are
  /// loaded and stored as one. With lanes, also those that are left over are counted by `lane`.
  enum class Form : std::uint8_t { element, lanes, left_over };

  /// Finds what does not change in the innermost loop.
  void find_rows() {
    for (const auto& load : kernel_.loads) row_load_.push_back(!load.at.linear && load.at.strides[inner_] == 0);
    for (std::size_t k = 0; k < kernel_.statements.size(); ++k) {
      const auto& statement = kernel_.statements[k];
      bool fixed = !uses_index(statement.expression.text);
      for (const auto& operand : statement.operands)
        fixed = fixed && (operand.from == From::scalar ||
                          (operand.from == From::load ? row_load_[operand.index] : row_statement_[operand.index]));
      row_statement_.push_back(fixed);
    }
  }

  /// A parameter list in lines that are not too long.
  static std::string wrapped(const std::string& list, std::size_t indent) {
    constexpr std::size_t width = 120;
    std::string text;
    std::size_t column = indent;
    for (std::size_t start = 0; start < list.size();) {
      const auto end = std::min(list.find(", ", start), list.size() - 2) + 2;
      const auto part = list.substr(start, end - start);
      if (!text.empty() && column + part.size() > width) {
        text.back() = '\n';
        text.append(indent, ' ');
        column = indent;
      }
      text += part;
      column += part.size();
      start = end;
    }
    return text;
  }

  std::string function_name() const {
    constexpr std::size_t most = 4;
    std::vector<std::string_view> names;
    for (const auto& statement : kernel_.statements) names.push_back(statement.node->op->name());
    if (names.size() == 1) return fmt::format("{}_elementwise", names[0]);
    std::string name = "fused";
    for (std::size_t k = 0; k < names.size() && k < most; ++k) name += fmt::format("_{}", names[k]);
    if (names.size() > most) name += fmt::format("_{}_more", names.size() - most);
    return name;
  }

  /// The index of a position, its strides and its first element added to the parameters.
  std::string index(const Position& at, const std::string& name) {
    if (at.linear) return "i";
    std::string text;
    const auto add = [&](const std::string& term) { text += (text.empty() ? "" : " + ") + term; };
    const auto parameter = [&](std::string parameter_name, std::int64_t value) {
      const bool known =
          std::any_of(strides_.begin(), strides_.end(), [&](const auto& other) { return other.first == parameter_name; });
      if (!known) strides_.emplace_back(parameter_name, value);
      return parameter_name;
    };
    if (at.first != 0) add(parameter(name + "_first", at.first));
    for (std::size_t d = 0; d <= inner_; ++d) {
      if (at.strides[d] == 0) continue;
      // With one loop its index is that of the element.
      const auto counter = inner_ == 0 ? std::string("i") : fmt::format("i{}", d);
      if (d == inner_ && at.strides[d] == 1)
        add(counter);
      else
        add(fmt::format("{} * {}", counter, parameter(fmt::format("{}_{}", name, d), at.strides[d])));
    }
    return text.empty() ? "0" : text;
  }

  std::string text_of(const Operand& operand) const {
    constexpr char letters[] = {'a', 's', 'v'};
    return fmt::format("{}{}", letters[static_cast<std::size_t>(operand.from)], operand.index);
  }

  /// The same for lane `lane` of the elements that begin there.
  std::string lane_index(const Position& at, const std::string& name) {
    const auto first = index(at, name);
    if (!at.linear && at.strides[inner_] == 0) return first;
    if (at.linear || at.strides[inner_] == 1) return fmt::format("({} + lane)", first);
    return fmt::format("({} + lane * {}_{})", first, name, inner_);
  }
  std::string index(const Position& at, const std::string& name, Form form) {
    return form == Form::element ? index(at, name) : lane_index(at, name);
  }

  std::string load(std::size_t k, std::string_view indent, Form form) {
    const auto& load = kernel_.loads[k];
    const auto from = form == Form::lanes
                          ? fmt::format("a{}_lanes[lane]", k)
                          : fmt::format("LOAD(x{}, {})", load.buffer, index(load.at, fmt::format("a{}", k), form));
    return fmt::format("{}const VALUE(x{}) a{} = {};\n", indent, load.buffer, k, from);
  }

  /// A single result is stored by its own line. Several are stored after all loads (see statements()).
  std::string statement(std::size_t k, std::string_view indent, bool with_store, Form form) {
    const auto& statement = kernel_.statements[k];
    const auto expression = rename(statement.expression.text, [&](std::string_view name) -> std::string {
      if (name == "i") return index(statement.at, fmt::format("v{}", k), form);
      if (name[0] == 'p') return fmt::format("p{}", first_parameter_[k] + static_cast<std::size_t>(name[1] - '0'));
      return text_of(statement.operands.at(static_cast<std::size_t>(name[0] - 'a')));
    });
    const auto dtype = statement.node->outputs[0].dtype;
    if (with_store && stored_[k] && !used_[k] && kernel_.outputs.size() == 1)
      return store(k, expression, indent, statement.node->op->name(), form);
    return fmt::format("{}const {} v{} = {};  // {}\n", indent, value_type(dtype, kernel_.f64), k, converted(dtype, expression),
                       statement.node->op->name());
  }

  std::string store(std::size_t k, std::string_view value, std::string_view indent, std::string_view comment, Form form) const {
    std::string text;
    for (std::size_t out = 0; out < kernel_.outputs.size(); ++out) {
      if (kernel_.outputs[out] != k) continue;
      // A cast to a number would not make 1 of all that is not 0.
      const bool truth = kernel_.statements[k].node->outputs[0].dtype == Dtype::boolean;
      const auto what = form == Form::lanes
                            ? fmt::format("y{}_lanes[lane] = {}{}{}", out, truth ? "(" : "", value, truth ? ") != 0" : "")
                        : nontemporal_ ? fmt::format("y{}_block[i - first_of_block] = {}", out, value)
                                       : fmt::format("STORE(y{}, {}, {})", out, form == Form::element ? "i" : "i + lane", value);
      text += fmt::format("{}{};{}{}\n", indent, what, comment.empty() ? "" : "  // ", comment);
    }
    return text;
  }

  /// All loads and operations that change in the innermost loop (`inner`), or those that do not. Loads stand just before the
  /// first operation that needs them.
  std::string statements(bool inner, std::string_view indent, Form form = Form::element) {
    std::string text;
    std::vector<bool> loaded(kernel_.loads.size(), false);
    for (std::size_t k = 0; k < kernel_.statements.size(); ++k) {
      for (const auto& operand : kernel_.statements[k].operands) {
        if (operand.from != From::load || loaded[operand.index] || row_load_[operand.index] == inner) continue;
        loaded[operand.index] = true;
        text += load(operand.index, indent, form);
      }
      if (row_statement_[k] != inner) text += statement(k, indent, inner, form);
    }
    if (!inner) return text;
    // An output may be the memory of an input: nothing is stored before everything is loaded.
    for (std::size_t k = 0; k < kernel_.statements.size(); ++k)
      if (stored_[k] && (used_[k] || row_statement_[k] || kernel_.outputs.size() > 1))
        text += store(k, fmt::format("v{}", k), indent, "", form);
    return text;
  }

  /// i0, i1, ... of the outer loops from a linear index over them.
  std::string outer_indices(std::string_view linear, std::size_t count, std::string_view indent) const {
    std::string text, rest(linear);
    for (std::size_t d = count; d-- > 1;) {
      text += fmt::format("{}const int i{} = REMAINDER({}, n{});\n", indent, d, rest, d);
      rest = fmt::format("{} / n{}", rest, d);
    }
    return text + fmt::format("{}const int i0 = {};\n", indent, rest);
  }

  /// For CPUs: a work-item takes rows (or a piece of one) in a loop that the compiler turns into vectors. Ends are reckoned from
  /// what is left: beyond the last of 2^31 - 1 elements an int has no place.
  std::string row_body() {
    const std::string pragma = "VECTOR_LOOP\n";
    if (nontemporal_) return nontemporal_body();
    if (inner_ == 0)
      return fmt::format(
          "  const int from = (int)get_global_id(0) * piece, to = from + min(piece, n0 - from);\n{}{}"
          "  for (int i = from; i < to; ++i) {{\n{}  }}\n",
          statements(false, "  "), pragma, statements(true, "    "));
    return fmt::format(
        "{1}{2}{3}{4}    for (int i{0} = from; i{0} < to; ++i{0}) {{\n"
        "      const int i = row * n{0} + i{0};\n{5}    }}\n  }}\n",
        inner_, rows_of_item(), outer_indices("row", inner_, "    "), statements(false, "    "), pragma,
        statements(true, "      "));
  }

  /// What a work-item takes where there are several loops: a piece of each of its rows.
  std::string rows_of_item() const {
    return fmt::format(
        "  const int item = (int)get_global_id(0), from = REMAINDER(item, pieces) * piece, to = from + min(piece, n{0} - from);\n"
        "  const int first = item / pieces * rows_per_item, last = first + min(rows_per_item, rows - first);\n"
        "  for (int row = first; row < last; ++row) {{\n",
        inner_);
  }

  /// The same, for results that are stored past the caches: so many elements of a row are computed into arrays, which are then
  /// stored by whole vectors.
  std::string nontemporal_body() {
    std::string arrays, stores;
    for (std::size_t k = 0; k < kernel_.outputs.size(); ++k) {
      arrays += fmt::format("{}y{}_block[NONTEMPORAL_BLOCK]", k ? ", " : "", k);
      stores += fmt::format("      NONTEMPORAL_OUT(y{0}, first_of_block, y{0}_block, end - block);\n", k);
    }
    const std::string block = fmt::format(
        "    for (int block = from; block < to; block += min(NONTEMPORAL_BLOCK, to - block)) {{\n"
        "      const int end = block + min(NONTEMPORAL_BLOCK, to - block), first_of_block = {0}block;\n      float "
        "{1};\nVECTOR_LOOP\n"
        "      for (int {2} = block; {2} < end; ++{2}) {{\n{3}{4}      }}\n{5}    }}\n",
        inner_ ? fmt::format("row * n{} + ", inner_) : "", arrays, inner_ ? fmt::format("i{}", inner_) : "i",
        inner_ ? fmt::format("        const int i = row * n{0} + i{0};\n", inner_) : "", statements(true, "        "), stores);
    if (inner_ == 0)
      return fmt::format(
          "  const int from = (int)get_global_id(0) * piece, to = from + min(piece, n0 - from);\n{}{}  NONTEMPORAL_FENCE();\n",
          statements(false, "  "), block);
    return fmt::format("{}{}{}{}  }}\n  NONTEMPORAL_FENCE();\n", rows_of_item(), outer_indices("row", inner_, "    "),
                       statements(false, "    "), block);
  }

  /// Whether results are many enough to be stored past the caches, and floats, as the arrays are.
  bool fit_for_nontemporal_stores() const {
    constexpr std::size_t most_outputs = 4;  // arrays in the first-level cache
    constexpr std::int64_t shortest = 256;   // elements of a row
    std::int64_t bytes = 0;
    for (auto output : kernel_.outputs) {
      const auto& spec = kernel_.statements[output].node->outputs[0];
      if (spec.dtype != Dtype::f32) return false;
      bytes += spec.bytes();
    }
    return kernel_.outputs.size() <= most_outputs && kernel_.loops[inner_] >= shortest &&
           nontemporal_stores(recorder_.device(), bytes);
  }

  /// With rows long enough to fill work-groups each loop is a dimension of the range; otherwise the linear index is taken apart.
  bool by_range() const { return inner_ == 0 || (inner_ <= 2 && kernel_.loops[inner_] / lanes_ >= 64); }

  /// The index of a work-item's (first) element, and an end for those beyond the last.
  std::string element_index() const {
    const std::string by_lanes = lanes_ > 1 ? " * LANES" : "";
    std::string text;
    if (by_range()) {
      std::string inside, linear;
      for (std::size_t d = 0; d <= inner_; ++d) {
        text += fmt::format("  const int i{} = (int)get_global_id({}){};\n", d, inner_ - d, d == inner_ ? by_lanes : "");
        inside += fmt::format("{}i{} < n{}", d ? " && " : "", d, d);
        linear = d > 1 ? fmt::format("({}) * n{} + i{}", linear, d, d) : d ? fmt::format("i0 * n{} + i{}", d, d) : "i0";
      }
      return text + fmt::format("  if (!({})) return;\n  const int i = {};\n", inside, linear);
    }
    std::string total;
    for (std::size_t d = 0; d <= inner_; ++d) total += fmt::format("{}n{}", d ? " * " : "", d);
    return fmt::format("  const int i = (int)get_global_id(0){};\n  if (i >= {}) return;\n", by_lanes, total) +
           outer_indices("i", inner_ + 1, "  ");
  }

  /// An element per work-item.
  std::string element_body() { return element_index() + statements(false, "  ") + statements(true, "  "); }

  /// Several elements per work-item, which are loaded and stored as one. Elements that are too few for that, at the end, and
  /// those of buffers that begin at an odd place (which may be others in each run) are computed one by one.
  std::string lanes_body() {
    std::string offsets, loads, arrays, stores;
    std::vector<bool> named(kernel_.buffers.size(), false);
    for (std::size_t k = 0; k < kernel_.outputs.size(); ++k) {
      offsets += fmt::format("{}y{}_offset", k ? " | " : "", k);
      arrays += fmt::format("    VALUE(y{0}) y{0}_lanes[LANES];\n", k);
      stores += fmt::format("    STORE_LANES(y{0}, i, y{0}_lanes);\n", k);
    }
    for (std::size_t k = 0; k < kernel_.loads.size(); ++k) {
      if (row_load_[k]) continue;
      const auto& [buffer, at] = kernel_.loads[k];
      if (!named[buffer]) offsets += fmt::format(" | x{}_offset", buffer);
      named[buffer] = true;
      loads += fmt::format("    VALUE(x{0}) a{1}_lanes[LANES];\n    LOAD_LANES(x{0}, {2}, a{1}_lanes);\n", buffer, k,
                           index(at, fmt::format("a{}", k)));
    }
    // With several loops the rows are of whole lanes.
    const std::string all = inner_ == 0 ? " && n0 - i >= LANES" : "", end = inner_ == 0 ? "min(LANES, n0 - i)" : "LANES";
    const auto before = element_index() + statements(false, "  ");
    return fmt::format(
        "{}  if (ALIGNED({}){}) {{\n{}{}"
        "#pragma unroll\n    for (int lane = 0; lane < LANES; ++lane) {{\n{}    }}\n{}  }} else {{\n"
        "#pragma unroll 1\n    for (int lane = 0; lane < {}; ++lane) {{\n{}    }}\n  }}\n",
        before, offsets, all, loads, arrays, statements(true, "      ", Form::lanes), stores, end,
        statements(true, "      ", Form::left_over));
  }

  void arguments(Launch& launch) const {
    for (std::size_t k = 0; k < kernel_.outputs.size(); ++k) launch.out(fmt::format("y{}", k), recorder_.output(k));
    const auto buffers = kernel_.buffers.size();
    for (std::size_t k = 0; k < buffers; ++k) launch.in(fmt::format("x{}", k), recorder_.input(k), access(k));
    for (std::size_t k = 0; k < kernel_.scalars.size(); ++k) launch.scalar(fmt::format("s{}", k), recorder_.input(buffers + k));
    for (const auto& statement : kernel_.statements)
      for (const double parameter : statement.expression.parameters) launch.arg_float(parameter);
    for (auto extent : kernel_.loops) launch.arg(extent);
    for (const auto& [name, stride] : strides_) launch.arg(stride);
  }

  /// `task_work`: elements of a cheap task.
  void row_range(Launch& launch, std::int64_t task_work) const {
    constexpr std::int64_t unit = 64;  // whole cache lines
    const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    const auto length = kernel_.loops[inner_];
    std::int64_t rows = 1;
    for (std::size_t d = 0; d < inner_; ++d) rows *= kernel_.loops[d];
    const auto work = rows * length * std::max(1, kernel_.cost() / 8);
    const auto units = std::max<std::int64_t>(1, recorder_.device().compute_units);
    auto tasks = std::clamp<std::int64_t>(work / task_work, 1, 4 * units);
    if (tasks > 1) tasks = up(tasks, units) * units;  // as many for each core
    const auto wanted_pieces = rows >= tasks ? 1 : up(tasks, std::max<std::int64_t>(rows, 1));
    const auto piece = std::max<std::int64_t>(1, wanted_pieces == 1 ? length : up(up(length, wanted_pieces), unit) * unit);
    const auto pieces = up(length, piece), rows_per_item = std::max<std::int64_t>(1, up(rows, tasks));
    if (inner_) launch.args({rows, rows_per_item});
    launch.arg(piece);
    if (inner_) launch.arg(std::max<std::int64_t>(pieces, 1));
    launch.range({pieces * up(rows, rows_per_item)}, {1});
  }

  void element_range(Launch& launch, std::int64_t group) const {
    const auto& loops = kernel_.loops;
    const auto items = [&](std::int64_t elements) { return elements / lanes_ + (elements % lanes_ != 0); };
    const auto along = [&](std::int64_t elements) {
      // Rounded up to whole groups, the last numbers would have no place in an int.
      if (elements > std::numeric_limits<std::int32_t>::max() - group * lanes_)
        launch.range({items(elements)});
      else
        launch.range({items(elements)}, {group});
    };
    if (!by_range())
      along(std::accumulate(loops.begin(), loops.end(), std::int64_t{1}, std::multiplies{}));
    else if (inner_ == 0)
      along(loops[0]);
    else if (inner_ == 1)
      launch.range({items(loops[1]), loops[0]}, {group, 1});
    else
      launch.range({items(loops[2]), loops[1], loops[0]}, {group, 1, 1});
  }

  /// Outputs may take the memory of an input that is only read at the index of the element.
  Access access(std::size_t buffer) const {
    const bool linear = std::all_of(kernel_.loads.begin(), kernel_.loads.end(),
                                    [&](const auto& load) { return load.buffer != buffer || load.at.linear; });
    return linear ? Access::same_element : Access::any;
  }

  const ElementwiseKernel& kernel_;
  Recorder& recorder_;
  const std::size_t inner_;   ///< the innermost loop
  std::int64_t lanes_ = 1;    ///< elements per work-item, where devices do not prefer vector kernels
  bool nontemporal_ = false;  ///< results are stored past the caches
  std::vector<bool> used_, stored_, row_load_, row_statement_;
  std::vector<std::size_t> first_parameter_;
  std::vector<std::pair<std::string, std::int64_t>> strides_;  ///< and first elements, by their parameters' names
  std::string name_, parameters_;
};

using Problem = Printer*;

/// Elements of a cheap task: some microseconds of work.
std::vector<Config> rows_configs(const Problem&, const DeviceInfo&) {
  return {{{"elements", 16384}}, {{"elements", 4096}}, {{"elements", 65536}}};
}

std::vector<Config> elements_configs(const Problem& printer, const DeviceInfo& device) {
  constexpr std::int64_t least = 64;
  const auto group = static_cast<std::int64_t>(std::min<std::size_t>(256, device.max_work_group_size));
  // What runs on CPUs is for comparing, and simple.
  const auto lanes = device.type == DeviceType::cpu && device.prefers_vector_kernels ? 1 : printer->fitting_lanes();
  std::vector<Config> result{{{"group", group}, {"lanes", lanes}}};
  for (auto smaller = group / 2; smaller >= least; smaller /= 2) result.push_back({{"group", smaller}, {"lanes", lanes}});
  if (lanes > 4) result.push_back({{"group", group}, {"lanes", 4}});
  if (lanes > 1) result.push_back({{"group", group}, {"lanes", 1}});
  return result;
}

const SolverList<Problem> solvers{
    "elementwise",
    {{"rows_cpu",
      [](const Problem&, const DeviceInfo& device) -> std::optional<std::string> {
        if (!device.prefers_vector_kernels) return "a work-item for many elements is for CPUs with vectors";
        return std::nullopt;
      },
      [](const Problem& printer, Recorder&) { (*printer)(true); }, nullptr, rows_configs, MadeFor::all, true},
     {"elements", accepts_everything<Problem>, [](const Problem& printer, Recorder&) { (*printer)(false); }, nullptr,
      elements_configs}}};

}  // namespace

void lower_elementwise(const ElementwiseKernel& kernel, Recorder& recorder) {
  Printer printer(kernel, recorder);
  solvers.lower(&printer, recorder.device(), recorder);
}

}  // namespace clnet::exec

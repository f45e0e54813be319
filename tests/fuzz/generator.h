// Makes random programs step by step. Decisions about structure (operations, operands, dtypes, dimensions) and about sizes
// (extents, offsets, lengths) come from different streams: programs of one block share their structure, so that a driver that
// compiles slowly sees their kernels again.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/program.h"
#include "tests/fuzz/random.h"

namespace clnet::fuzz {

struct Settings {
  int max_ops = 20;
  int block = 16;                     ///< so many neighbouring seeds share a structure
  std::int64_t most_elements = 4096;  ///< of a value
  std::string operation = {};         ///< with which each program begins; empty: any
  bool deep = false;                  ///< training steps of chains of layers, whose values are large and read late
  bool doubles = false;               ///< some programs are in f64
  std::optional<Dtype> dtype = {};    ///< the main one of each program; empty: any
  bool plain = false;                 ///< calls of operations alone: no gradients, slots, detach() and checkpoints; no bf16
  std::set<std::string, std::less<>> without = {};  ///< entries that take no part
};

/// Between which numbers a value's elements are expected to lie, so that functions get arguments that they are defined for.
struct Range {
  double low = -2, high = 2;
  double size() const { return std::max(std::fabs(low), std::fabs(high)); }
};

class Generator {
 public:
  Generator(std::uint64_t seed, const Settings& settings);
  Program operator()();

  bool is_plain() const { return settings_.plain; }

  // Decisions, of the step that is being made.
  Rng& choose() { return choose_; }
  Rng& sizes() { return sizes_; }

  /// An extent from the program's few, so that shapes of different values often match.
  std::int64_t extent() { return choose_.of(extents_); }
  /// Of so many dimensions; fewer elements than a value may have.
  Shape shape(int rank);
  bool fits(std::int64_t elements) const { return elements <= settings_.most_elements; }

  const Spec& spec(const Ref& ref) const { return tensor(ref).spec(); }
  const Shape& shape_of(const Ref& ref) const { return tensor(ref).shape(); }
  Dtype dtype_of(const Ref& ref) const { return tensor(ref).dtype(); }
  Range range(const Ref& ref) const { return ranges_[ref.step][ref.output]; }

  // Operands: a value that was made before (recent ones rather), or a new leaf.
  using Condition = std::function<bool(const Ref&)>;
  std::vector<Ref> all(const Condition& condition) const;
  Ref any(const Condition& condition, const std::function<Ref()>& otherwise);
  /// Any dtype and rank.
  Ref any_value();
  /// A floating value of at least `rank` dimensions with elements of at most `size`.
  Ref floating(double size = 8, int rank = 0);
  /// Of elements from `low` to `high`, both above 0.
  Ref positive();
  Ref integers(double size = 1000);
  Ref truth();
  /// {N, C, H, W}, with a height and a width of at least `least`.
  Ref image(std::int64_t least);
  /// A value of the dtype that `shape` broadcasts with, or broadcast to it when `within`.
  Ref partner(const Shape& shape, Dtype dtype, bool within = false);
  /// One of x's lines along a dimension: a view of x, or a copy, that broadcasts with it.
  Ref line_of(const Ref& x);
  /// A floating value of exactly this shape and dtype.
  Ref of_shape(const Shape& shape, Dtype dtype);
  /// The same with elements of at most `size`, squashed where needed.
  Ref tame(const Ref& ref, double size);
  Ref leaf(const Shape& shape, Dtype dtype, Range range = {}, Fill fill = Fill::smooth);
  Dtype float_dtype();
  /// Another for one that the settings leave out.
  Dtype allowed(Dtype dtype) const { return settings_.plain && dtype == Dtype::bf16 ? Dtype::f16 : dtype; }
  /// Of a program in f64, for one in three.
  bool casts_to_doubles() { return main_dtype_ == Dtype::f64 && choose_.chance(0.3); }
  /// In which statistics and weights of classes are, beside values of this dtype.
  static Dtype wide(Dtype dtype) { return dtype == Dtype::f64 ? dtype : Dtype::f32; }

  // Steps. `code` is C++ with $0, $1, ... for the inputs.
  using Make = std::function<Tensors(const Tensors&)>;
  Ref add(std::string op, std::string code, std::vector<Ref> inputs, const std::function<Tensor(const Tensors&)>& make,
          Range range);
  std::vector<Ref> add_all(std::string op, std::string code, std::vector<Ref> inputs, Make make, Range range);

 private:
  const Tensor& tensor(const Ref& ref) const { return tensors_[ref.step][ref.output]; }
  std::vector<Ref> append(Step step, Tensors outputs, Range range);
  void add_operation();
  void add_wanted_operation();
  void add_training_step();
  Ref add_layer(Ref x, std::vector<Ref>& weights);
  void add_gradients();
  void add_detach();
  void add_follow();
  void add_checkpoint();
  void schedule();

  std::uint64_t seed_;
  Settings settings_;
  Program program_;
  Rng choose_, sizes_;
  Dtype main_dtype_;
  std::vector<std::int64_t> extents_;
  std::vector<Tensors> tensors_;
  std::vector<std::vector<Range>> ranges_;
  std::size_t group_ = 0, groups_ = 0;
  int gradients_ = 0;
};

/// A public operation and how a random call of it is made; false: it does not fit here.
struct Entry {
  std::string_view name;  ///< as in ops.h
  double weight;
  std::function<bool(Generator& g)> add;
};
/// A floating value {N, C, ...} with more than one element in each channel, of elements up to 8.
Ref with_channels(Generator& g);
/// A value of at least `rank` dimensions, of any dtype.
Ref with_rank(Generator& g, int rank);
int some_dim(Generator& g, const Ref& x);
/// A leaf of indices for an extent, some of which count from its end.
Ref indices(Generator& g, std::int64_t extent, const Shape& shape);

/// All of ops.h.
const std::vector<Entry>& table();
std::vector<Entry> elementwise_entries(), number_entries(), shape_entries(), reduce_entries(), image_entries(), volume_entries(),
    normalize_entries(), loss_entries(), attention_entries(), recurrent_entries(), index_entries();
/// Of the catalogue's operations that are not among the names: elementwise functions, and the first of an operation's registered
/// cases.
std::vector<Entry> catalogued_entries(const std::set<std::string_view>& names);
/// The name in the catalogue of an operation of ops.h: add of operator+.
std::string_view catalogued_name(std::string_view function);

}  // namespace clnet::fuzz

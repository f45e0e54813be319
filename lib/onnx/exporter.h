// Writes clnet's graph as ONNX's: the walk over the nodes, the names of values, initializers, and what follows the batch.
//
// A graph is built for four sizes of the batch. Where its four builds agree but for integers that grow evenly with the batch,
// these are written as such: an extent of 4 * batch, say. Otherwise one build, for the examples' size, is written.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "lib/graph/composition.h"
#include "lib/graph/node.h"
#include "lib/onnx/external_data.h"
#include "lib/onnx/host_tensor.h"
#include "lib/onnx/names.h"

namespace clnet::onnx {

/// Thrown where the builds differ in more than such integers.
struct FollowsNoBatch : Error {
  using Error::Error;
};

/// An integer: factor * batch + constant.
struct Extent {
  std::int64_t factor = 0, constant = 0;
  bool fixed() const { return factor == 0; }
  auto operator<=>(const Extent&) const = default;
};
using ExtentList = std::vector<Extent>;

/// A node of the file.
struct WrittenNode {
  std::string op, name;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  ///< messages
};

/// A constant, which is an initializer of the file.
struct Initializer {
  std::string name;
  HostTensor host;
};

class SaveCall;

/// How an operation of clnet, or a function that others make up, is written.
struct Saver {
  std::string_view name;
  void (*save)(SaveCall& call) = nullptr;
  /// Whether a function is written whole; null: always. Otherwise what it is made of is written.
  bool (*fits)(const SaveCall& call) = nullptr;
};
std::vector<Saver> elementwise_savers(), image_savers(), index_savers(), layer_savers(), norm_savers(), recurrent_savers(),
    reduce_savers(), shape_savers();

/// One build of the graph.
struct Build {
  Tensors inputs, outputs;
  Compositions compositions;
  std::uint64_t first = 0;  ///< earlier nodes are values that the function found
};

/// A call of an operation, in each build.
struct Site {
  std::string_view name;
  std::vector<Fields> fields;
  std::vector<Tensors> inputs, outputs;
  ScopePtr scope;
  const Saver* saver = nullptr;
};

class Exporter {
 public:
  struct Names {
    std::vector<std::string> inputs, outputs;
    std::map<std::uint64_t, std::string> parameters;  ///< by slot
  };
  /// `batch`: by build; empty: the graph has one size.
  Exporter(int opset, const std::vector<std::unique_ptr<Build>>& builds, std::vector<std::int64_t> batch, const Names& names);

  /// Writes all that the outputs are made of.
  void run();
  /// Throws FollowsNoBatch where the outputs of a batch of this size are not of the specs that the file gives them.
  void require_outputs(std::int64_t batch, const Tensors& outputs) const;
  /// Bytes of the constants.
  std::uint64_t constant_bytes() const;
  /// The file's GraphProto, with all parameters, read or not. `beside`: takes large tensors; null: all are in the file.
  std::string graph(const std::vector<std::pair<std::string, Tensor>>& parameters, ExternalData* beside) const;

  int opset() const { return opset_; }

 private:
  friend class SaveCall;
  using Key = std::pair<const Node*, int>;
  struct Known {
    std::string name;  ///< empty: a constant that nothing has read yet
    bool constant = false;
    Tensors at;  ///< by build
  };

  static Key key_of(const Tensor& tensor) { return {node_of(tensor).get(), output_of(tensor)}; }
  void visit(const Tensors& root);
  bool define_leaf(const Tensors& at);
  void define_value(const Tensors& at);
  Site site_of(const Tensors& at);
  std::optional<Site> composed_site(const Tensors& at);
  /// Throws where the builds have other dtypes, ranks or numbers of tensors.
  void require_same_kind(const Site& site) const;
  void emit(const Site& site);
  bool is_constant(const Site& site) const;
  Known& known(const Tensor& tensor);
  const std::string& name_of(const Tensor& tensor);
  void define(const Tensors& at, std::string name, bool constant);

  Extent extent_of(const std::vector<std::int64_t>& by_build) const;
  std::string unique(const std::string& name) { return taken_.numbered(name, 1); }
  std::string constant(const HostTensor& host);
  std::string add_node(const ScopePtr& scope, std::string_view op, std::vector<std::string> inputs,
                       std::vector<std::string> attributes, std::size_t outputs, std::vector<std::string>* all = nullptr);
  std::string batch();
  std::string integer(const Extent& extent);        // {1}
  std::string integers(const ExtentList& extents);  // {count}
  std::string value_info(const Tensors& at, const std::string& name) const;

  const int opset_;
  const std::vector<std::unique_ptr<Build>>& builds_;
  const std::vector<std::int64_t> batch_;
  const Names& names_;
  std::map<Key, Known> known_;
  UniqueNames taken_;
  std::vector<WrittenNode> nodes_;
  std::vector<Initializer> initializers_;
  std::map<std::tuple<int, std::vector<std::int64_t>, std::vector<char>>, std::string> constants_;
  std::map<Extent, std::string> integers_;
  std::string batch_name_, batch_input_;
};

/// A site while it is written: what it computes from what, and the nodes that its Saver adds.
class SaveCall {
 public:
  SaveCall(Exporter& exporter, const Site& site) : exporter_(exporter), site_(site) {}

  std::string_view name() const { return site_.name; }
  int opset() const { return exporter_.opset(); }
  std::size_t count() const { return site_.inputs[0].size(); }
  std::size_t outputs() const { return site_.outputs[0].size(); }
  bool has(std::size_t input) const { return input < count() && site_.inputs[0][input].defined(); }
  /// A spec in the first build. Dtypes and ranks are the same in all.
  Spec spec(std::size_t input) const { return site_.inputs[0][input].spec(); }
  Spec out(std::size_t output = 0) const { return site_.outputs[0][output].spec(); }
  Dtype dtype(std::size_t input = 0) const { return spec(input).dtype; }
  int rank(std::size_t input = 0) const { return spec(input).shape.rank(); }
  ExtentList shape(std::size_t input) const;
  ExtentList out_shape(std::size_t output = 0) const;
  /// An extent of an input that becomes a number of the file: one for all builds.
  std::int64_t fixed_extent(std::size_t input, std::size_t dim) const;

  // Attributes. All builds must have the same, but for integers of extent() and extents(), which may follow the batch.
  bool has_field(std::string_view field) const;
  bool flag(std::string_view field) const;
  std::int64_t integer(std::string_view field) const;
  double number(std::string_view field) const;
  std::string text(std::string_view field) const;
  std::vector<std::int64_t> integers(std::string_view field) const;
  Extent extent(std::string_view field) const;
  ExtentList extents(std::string_view field) const;

  /// The name of an input.
  std::string in(std::size_t input);
  /// The same, cast where its dtype is another.
  std::string in_as(std::size_t input, Dtype dtype);
  /// The value of an input that is a constant; std::nullopt: it is none.
  std::optional<HostTensor> constant(std::size_t input) const;

  // Nodes.
  std::string op(std::string_view op, std::vector<std::string> inputs, std::vector<std::string> attributes = {});
  std::vector<std::string> ops(std::string_view op, std::vector<std::string> inputs, std::vector<std::string> attributes,
                               std::size_t outputs);
  std::string cast(const std::string& value, Dtype to);
  std::string scalar(double value, Dtype dtype);
  std::string tensor(const HostTensor& host) { return exporter_.constant(host); }
  /// A list of integers, i64.
  std::string list(const ExtentList& extents) { return exporter_.integers(extents); }
  std::string list(const std::vector<std::int64_t>& values);
  std::string reshape(const std::string& value, const ExtentList& to);
  std::string expand(const std::string& value, const ExtentList& to);
  std::string transpose(const std::string& value, const std::vector<std::int64_t>& order);
  std::string slice(const std::string& value, std::int64_t dim, std::int64_t start, std::int64_t end);

  /// Names an output.
  void give(std::string name, std::size_t output = 0);

  /// Throws FollowsNoBatch: what it writes is for one size of the batch.
  [[noreturn]] void follow_no_batch() const;
  /// Throws Unsupported, which names the operation and its module.
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  friend class Exporter;
  const Field& field(std::string_view field, std::size_t build) const;
  template <class T>
  const T& same(std::string_view field) const;

  Exporter& exporter_;
  const Site& site_;
  std::map<std::size_t, std::string> given_;
};

inline ExtentList fixed(const std::vector<std::int64_t>& values) {
  ExtentList out;
  for (const auto value : values) out.push_back({0, value});
  return out;
}

}  // namespace clnet::onnx

// The library's way to what the public classes keep from users. Each floor has functions over it, as node_of() of
// lib/graph/node.h.
#pragma once

#include <utility>

namespace clnet::detail {

/// A friend of those classes, which are complete only where its functions are called.
struct access {
  template <class T>
  static const auto& node(const T& tensor) {
    return tensor.node_;
  }
  template <class T>
  static int output(const T& tensor) {
    return tensor.output_;
  }
  /// From now on the tensor, which is defined, counts as this.
  template <class T, class As>
  static void count_as(T& tensor, As as) {
    tensor.count_as(as);
  }
  template <class T>
  static const auto& context(const T& device) {
    return device.context_;
  }
  template <class T>
  static const auto& slot(const T& parameter) {
    return parameter.slot_;
  }
  /// By a private constructor.
  template <class T, class... Parts>
  static T make(Parts&&... parts) {
    return T(std::forward<Parts>(parts)...);
  }
};

}  // namespace clnet::detail

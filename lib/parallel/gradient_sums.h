// The gradients of a step's parts, added up in the host's memory while backward passes go on.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "clnet/tensor.h"

namespace clnet::parallel {

/// The sum over all parts of a step, by gradient. The gradients come in buckets, those of the last parameters first, and whoever
/// brings a bucket's last part adds it: in the order of the parts, so that the bits do not depend on who that is. Threads of all
/// parts may call at once.
class GradientSums {
 public:
  struct Options {
    std::size_t parts = 1;
    /// Gradients are those of each part's share of the loss. Otherwise they are of its mean, and weighed by its count.
    bool weighed = false;
    double factor = 1;  ///< what the sums are multiplied by
  };
  GradientSums(std::vector<Shape> shapes, const Options& options);

  /// Before a part computes: what its gradients are divided by, and how many numbers its loss is the mean of, where that is
  /// known.
  void begin(std::size_t part, double scale, double count);
  /// The count, before the part's first bucket.
  void set_count(std::size_t part, double count);

  /// Whether the part's numbers are still missing. An evaluation that is tried again brings the same ones.
  bool misses(std::size_t part, std::size_t bucket) const;
  /// The numbers of the bucket's gradients, one after the other.
  void give(std::size_t part, std::size_t bucket, std::shared_ptr<const float[]> numbers);

  /// When all parts are there: the sums, f32 in the host's memory.
  std::vector<Tensor> sums() const;

  /// An operation that gives this thread's Attendance the gradients, and their count where there is one, as soon as they are
  /// there. The result is a number without meaning: who evaluates it, gives them.
  static Tensor given(std::vector<Tensor> gradients, const Tensor& count);

 private:
  class GiveOp;
  struct Part {
    double scale = 1, count = 0;
  };
  struct Bucket {
    std::vector<std::size_t> gradients;
    std::vector<std::shared_ptr<const float[]>> numbers;  ///< by part; freed when all are there
    std::size_t given = 0;
  };
  std::vector<double> factors() const;
  std::size_t count_of(std::size_t gradient) const { return static_cast<std::size_t>(shapes_[gradient].numel()); }

  const std::vector<Shape> shapes_;
  const Options options_;
  mutable std::mutex mutex_;  ///< guards parts and buckets
  std::vector<Part> parts_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<float>> sums_;  ///< by gradient; each bucket's are written once
};

}  // namespace clnet::parallel

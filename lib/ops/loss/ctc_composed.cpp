// The forward recursion of ctc_loss as graph: the way to its second derivatives. States come first in each shape, so that those
// one and two before are views.
#include <limits>

#include "clnet/ops.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/loss/ctc.h"
#include "lib/ops/shape/unstack.h"

namespace clnet::ops {

namespace {

/// The logarithm of no probability, with room for sums of it: of infinities differences would make NaN.
constexpr double nothing = -1e30;

/// Blank, first target, blank, second target, ..., blank: {2 S + 1, N}.
Tensor labels_of(const CtcInputs& in) {
  const auto& shape = in.targets.shape();
  const Tensor blanks = full(shape.with(1, shape[1] + 1), static_cast<double>(in.blank), in.targets.dtype());
  const Tensor pairs = stack({slice(blanks, 1, 1), in.targets}, 2);
  return transpose(concat({reshape(pairs, shape.with(1, 2 * shape[1])), slice(blanks, 1, 0, 1)}, 1), 0, 1);
}

/// 0 for states of another label than the second before, which may be left out between the two; else nothing. {2 S + 1, N}.
Tensor skips_of(const Tensor& labels, Dtype dtype) {
  const auto states = labels.size(0);
  const Tensor none = full(labels.shape().with(0, states > 1 ? 2 : 1), nothing, dtype);
  if (states == 1) return none;
  return concat({none, where(not_equal(slice(labels, 0, 2), slice(labels, 0, 0, states - 2)), Tensor::scalar(0, dtype),
                             Tensor::scalar(nothing, dtype))},
                0);
}

}  // namespace

Tensor ctc_composed(const CtcInputs& in) {
  const auto dtype = computed_in(in.log_probs.dtype());
  const Tensor labels = labels_of(in), skips = skips_of(labels, dtype);
  const auto steps = in.log_probs.size(0), batch = in.log_probs.size(1), states = labels.size(0);
  const Tensor known = stop_gradient(in.losses), counts = less(abs(known), std::numeric_limits<double>::infinity());
  const Tensor state = unsqueeze(arange(states, 0, 1, in.target_lengths.dtype()), 1), last = in.target_lengths * 2.0;
  const Tensor step = reshape(arange(steps, 0, 1, in.input_lengths.dtype()), {steps, 1, 1});

  // What does not count is 0, whatever it was: no gradient may make NaN of it.
  const Tensor own = logical_and(less_equal(state, last), counts);
  const Tensor in_time = less(step, in.input_lengths);
  const Tensor indices = expand(transpose(labels, 0, 1), {steps, batch, states});
  Tensor x = transpose(gather(as_f32(in.log_probs), 2, indices), 1, 2);
  x = where(less(x, nothing), nothing, x);
  const auto all_x = unstack(where(logical_and(own, in_time), x, Tensor::scalar(0, dtype)));

  // Before the first step all are in the first blank: from there the first target is one further, as ever.
  Tensor sums = expand(where(eq(state, 0.0), Tensor::scalar(0, dtype), Tensor::scalar(nothing, dtype)), {states, batch});
  const Tensor margin = full({2, batch}, nothing, dtype);
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor all = concat({margin, sums}, 0);
    const auto back = [&](std::int64_t by) { return slice(all, 0, 2 - by, 2 - by + states); };
    const Tensor stay = back(0), one = back(1), two = back(2) + skips;
    const Tensor most = stop_gradient(maximum(stay, maximum(one, two))), reached = greater(most, nothing / 2);
    const Tensor base = where(reached, most, 0.0), sum = exp(stay - base) + exp(one - base) + exp(two - base);
    const Tensor next = where(reached, base + log(where(reached, sum, 1.0)) + all_x[static_cast<std::size_t>(t)], nothing);
    sums = where(greater(in.input_lengths, static_cast<double>(t)), next, stay);
  }
  // The last blank and the last target.
  const Tensor ends = logical_and(greater_equal(state, last - 1.0), less_equal(state, last));
  const Tensor losses = -logsumexp(where(counts, where(ends, sums, nothing), 0.0), {0});
  return where(counts, losses, known);
}

}  // namespace clnet::ops

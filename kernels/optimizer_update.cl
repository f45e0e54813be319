// One step of an optimizer for one parameter: reads the value, its gradient and the optimizer's state, writes the new ones.
// RULE chooses the formula, so that the program of one optimizer holds no other's code. Formulas: PyTorch's documentation of
// torch.optim; rates and bias corrections are computed in double on the host.
#include "clnet.clh"

#define SGD 0
#define SGD_MOMENTUM 1
#define ADAM 2
#define RMSPROP 3
#define RMSPROP_MOMENTUM 4

kernel void optimizer_update(IN(p), IN(g), OUT(new_p),
#if RULE != SGD
                             IN(m), OUT(new_m),
#endif
#if RULE == ADAM || RULE == RMSPROP_MOMENTUM
                             IN(v), OUT(new_v),
#endif
                             SCALAR(rate), SCALAR(shrink), SCALAR(second_scale), const float decay, const float beta1,
                             const float beta2, const float eps, const int nesterov, const int n) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  // Decoupled decay shrinks the parameter (AdamW), the other kind joins the gradient.
  float value = LOAD(p, i) * shrink;
  const float slope = LOAD(g, i) + decay * LOAD(p, i);
#if RULE == SGD
  value -= rate * slope;
#elif RULE == SGD_MOMENTUM
  const float momentum = beta1 * LOAD(m, i) + slope;
  value -= rate * (nesterov ? slope + beta1 * momentum : momentum);
  STORE(new_m, i, momentum);
#elif RULE == ADAM
  const float mean = beta1 * LOAD(m, i) + (1.0f - beta1) * slope;
  const float mean_square = beta2 * LOAD(v, i) + (1.0f - beta2) * slope * slope;
  value -= rate * mean / (sqrt(mean_square) * second_scale + eps);
  STORE(new_m, i, mean);
  STORE(new_v, i, mean_square);
#else
  const float mean_square = beta2 * LOAD(m, i) + (1.0f - beta2) * slope * slope;
  const float scaled = slope / (sqrt(mean_square) + eps);
  STORE(new_m, i, mean_square);
#if RULE == RMSPROP_MOMENTUM
  const float momentum = beta1 * LOAD(v, i) + scaled;
  value -= rate * momentum;
  STORE(new_v, i, momentum);
#else
  value -= rate * scaled;
#endif
#endif
  STORE(new_p, i, value);
}
